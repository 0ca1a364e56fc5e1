"""A program: rows of a topic are timed by their timestamps at the sink, once as a column and once as record times.

It prints one line of JSON: both latencies, and how old every row was at least. In a process of its own, because the
class path of the driver's JVM is that of its first session.
"""

import json
import sys
import time
from pathlib import Path

from barograph.engines.spark.conf import class_path, plugin_jar, plugin_settings
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import open_session, real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.kafka import connector_jars, start_broker
from barograph.workloads.topic import Topic

ROWS = 500
AGE_S = 2.0


def main(folder: Path) -> None:
    jars = class_path(plugin_jar(), *connector_jars())
    local = {
        "spark.master": "local[6]", "spark.driver.bindAddress": "127.0.0.1",
        "spark.barograph.latency.column": "timestamp",
    }  # fmt: skip
    with start_broker() as broker:
        spark = open_session("times of a topic", plugin_settings(), jars, local, log=folder / "jvm.log")
        engine = SparkEngine(spark, {})
        rows = spark.range(ROWS).selectExpr("cast(id as string) as key", "'x' as value")
        reached = Topic("lines", broker.address, broker.login.options()).options()
        rows.write.format("kafka").options(**reached).option("topic", "lines").save()
        produced_s = time.monotonic()
        while time.monotonic() - produced_s < AGE_S:
            time.sleep(0.1)
        age_s = time.monotonic() - produced_s
        read = spark.readStream.format("kafka").options(**reached)
        lines = read.option("subscribe", "lines").option("startingOffsets", "earliest").load()
        writer = lines.repartition(2).selectExpr("key", "timestamp").writeStream.format("noop").outputMode("update")
        writer = writer.queryName("timed").option("checkpointLocation", str(folder / "checkpoint"))
        query = real_time(writer, 3.0).start()
        deadline = time.monotonic() + 120
        while engine.latency("timed", "record").count < ROWS or engine.latency("timed", "due").count < ROWS:
            if time.monotonic() > deadline:
                raise TimeoutError("not every row came out within 120 s")
            require_alive(query)
            time.sleep(0.1)
            engine.refresh()
        found = {clock: engine.latency("timed", clock) for clock in ("due", "record")}
        query.stop()
        spark.stop()
        told = {clock: {"rows": h.count, "sum_ms": h.sum_ms, "least_bucket": min(h.rows)} for clock, h in found.items()}
        sys.stdout.write(json.dumps({**told, "age_ms": 1000 * age_s}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
