"""A program that compares the state of examples/windowed_word_count.py with what its input contained.

It takes the checkpoint, and prints as JSON how many counts there are and which are wrong.
"""

import json
import sys
from pathlib import Path

from pyspark.sql.functions import window

from barograph.engines.spark.conf import plain_settings
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.session import open_session
from barograph.workloads.replay import FORMAT


def main(checkpoint: Path) -> None:
    log = checkpoint.with_name("verdict.log")
    spark = open_session("window-counts", plain_settings(), {"spark.master": "local[2]"}, log=log)
    state = spark.read.format("statestore").load(str(checkpoint))
    counted = state.selectExpr("CAST(key.window.start AS STRING) || ' ' || key.word AS name", "value.count AS n")
    found = {r["name"]: r["n"] for r in counted.collect()}
    load = json.loads((checkpoint / "sources" / "0" / "load.json").read_text())
    read = committed_offsets(checkpoint)
    options = {"until_rows": ",".join(map(str, read)), **{key: str(value) for key, value in load.items()}}
    lines = spark.read.format(FORMAT).options(**options).load()
    words = lines.selectExpr("explode(split(value, ' ')) AS word", "timestamp_millis(due_ms) AS timestamp")
    expected = words.groupBy(window(words.timestamp, "10 seconds", "5 seconds"), words.word).count()
    due = {
        r["name"]: r["n"]
        for r in expected.selectExpr("CAST(window.start AS STRING) || ' ' || word AS name", "count AS n").collect()
    }
    wrong = {name: (found.get(name), due.get(name)) for name in {*found, *due} if found.get(name) != due.get(name)}
    sys.stdout.write(json.dumps({"rows": sum(read), "counts": len(due), "wrong": wrong}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
