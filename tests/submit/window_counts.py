"""A program that compares the state of examples/windowed_word_count.py with what its input contained.

It takes the checkpoint, and prints as JSON how many counts there are and which are wrong. Windows that ended by the
watermark are left out: the query drops their counts from its state.
"""

import json
import sys
from pathlib import Path

from pyspark.sql.functions import window

from barograph.engines.spark.conf import plain_settings
from barograph.engines.spark.query.checkpoint import committed_offsets, last_committed_epoch
from barograph.engines.spark.session import open_session
from barograph.workloads.replay import FORMAT


def watermark_ms(checkpoint: Path) -> int:
    """By which the last committed epoch has dropped windows."""
    lines = (checkpoint / "offsets" / str(last_committed_epoch(checkpoint))).read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[1])["batchWatermarkMs"])


def main(checkpoint: Path) -> None:
    log = checkpoint.with_name("verdict.log")
    dropped_ms = watermark_ms(checkpoint)
    spark = open_session("window-counts", plain_settings(), {"spark.master": "local[2]"}, log=log)
    state = spark.read.format("statestore").load(str(checkpoint))
    state = state.where(f"unix_millis(key.window.end) > {dropped_ms}")
    counted = state.selectExpr("CAST(key.window.start AS STRING) || ' ' || key.word AS name", "value.count AS n")
    found = {r["name"]: r["n"] for r in counted.collect()}
    load = json.loads((checkpoint / "sources" / "0" / "load.json").read_text())
    read = committed_offsets(checkpoint)
    options = {"until_rows": ",".join(map(str, read)), **{key: str(value) for key, value in load.items()}}
    lines = spark.read.format(FORMAT).options(**options).load()
    words = lines.selectExpr("explode(split(value, ' ')) AS word", "timestamp_millis(due_ms) AS timestamp")
    expected = words.groupBy(window(words.timestamp, "10 seconds", "5 seconds"), words.word).count()
    expected = expected.where(f"unix_millis(window.end) > {dropped_ms}")
    due = {
        r["name"]: r["n"]
        for r in expected.selectExpr("CAST(window.start AS STRING) || ' ' || word AS name", "count AS n").collect()
    }
    wrong = {name: (found.get(name), due.get(name)) for name in {*found, *due} if found.get(name) != due.get(name)}
    sys.stdout.write(json.dumps({"rows": sum(read), "counts": len(due), "wrong": wrong}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
