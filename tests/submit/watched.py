"""Runs a script, and watches what Spark shows a program of its queries: ``watched.py SEEN SCRIPT CHECKPOINT``.

A second query writes into a table, by ``toTable``. SEEN is a file of what was seen so far, as JSON.
"""

import json
import runpy
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

seen_file, script, checkpoint = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
started: list[str] = []
terminated: list[str] = []
progressed: set[str] = set()
waited: list[object] = []
active: list[list[str]] = []


class Listener(StreamingQueryListener):
    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        started.append(str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        progressed.add(str(event.progress.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        terminated.append(str(event.id))


spark = SparkSession.builder.appName("Watched").getOrCreate()
spark.streams.addListener(Listener())
spark.sql("CREATE TABLE kept USING noop")
lines = spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("partitions", "1")
table = (
    lines.option("segments", "0.0:1.0:20.0:20.0").load().writeStream.queryName("into-a-table").outputMode("update")
    .option("checkpointLocation", f"{checkpoint}-of-table").trigger(realTime="5 seconds").toTable("kept")  # type: ignore[call-overload]  # PySpark's types lack realTime
)  # fmt: skip


def wait() -> None:
    waited.append(spark.streams.awaitAnyTermination())


def watch() -> None:
    while True:
        now = sorted(str(query.id) for query in spark.streams.active)
        if active[-1:] != [now]:
            active.append(now)
        same = all(getattr(spark.streams.get(query_id), "id", None) == query_id for query_id in now)
        found = {
            "active": active, "started": started, "terminated": terminated, "progressed": sorted(progressed),
            "waited": len(waited), "same": same, "table": str(table.id), "table_is_active": table.isActive,
        }  # fmt: skip
        new = seen_file.with_suffix(".new")
        new.write_text(json.dumps(found))
        new.replace(seen_file)
        time.sleep(0.1)


for look in (wait, watch):
    threading.Thread(target=look, daemon=True).start()
sys.argv = sys.argv[2:]
runpy.run_path(script, run_name="__main__")
