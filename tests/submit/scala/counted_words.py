"""A program that compares the state of Counts.scala with what its input contained; as window_counts.py does."""

import json
import sys
from pathlib import Path

from barograph.engines.spark.conf import plain_settings
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.session import open_session
from barograph.workloads.replay import FORMAT


def main(checkpoint: Path) -> None:
    log = checkpoint.with_name("verdict.log")
    spark = open_session("counted-words", plain_settings(), {"spark.master": "local[2]"}, log=log)
    state = spark.read.format("statestore").option("stateVarName", "count").load(str(checkpoint))
    found = {r["word"]: r["n"] for r in state.selectExpr("key.value AS word", "value.value AS n").collect()}
    load = json.loads((checkpoint / "sources" / "0" / "load.json").read_text())
    read = committed_offsets(checkpoint)
    options = {"until_rows": ",".join(map(str, read)), **{key: str(value) for key, value in load.items()}}
    lines = spark.read.format(FORMAT).options(**options).load()
    expected = lines.selectExpr("explode(split(value, ' ')) AS word").groupBy("word").count()
    due = {r["word"]: r["count"] for r in expected.collect()}
    wrong = {word: (found.get(word), due.get(word)) for word in {*found, *due} if found.get(word) != due.get(word)}
    sys.stdout.write(json.dumps({"rows": sum(read), "counts": len(due), "wrong": wrong}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
