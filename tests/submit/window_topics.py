"""A program that compares the output topic of examples/kafka_windowed_word_count.py with what its input contained.

It takes JSON: ``topic`` and ``output``, their names, ``client``, the options of Kafka's clients, ``load``, the options
with which the replay source has the same rows, and ``jars``, those of Spark's connector. It prints as JSON how many
rows and counts there are, how many records were written, and which last records are wrong.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

from barograph.engines.spark.conf import WORKLOADS_JAR, class_path, plain_settings, plugin_jar
from barograph.engines.spark.session import open_session
from barograph.workloads.replay import FORMAT


def rows_of(spark: SparkSession, topic: str, client: dict[str, str]) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in client.items()}
    return spark.read.format("kafka").options(**options).option("subscribe", topic).load()


def main(given: dict[str, Any]) -> None:
    jars = class_path(plugin_jar(), WORKLOADS_JAR, *map(Path, given["jars"]))
    local = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4"}
    spark = open_session("window-topics", plain_settings(), jars, local)
    counted = rows_of(spark, given["topic"], given["client"]).groupBy("partition").count()
    read = {r["partition"]: r["count"] for r in counted.collect()}
    rows_of(spark, given["output"], given["client"]).createOrReplaceTempView("written")
    # All records of a key are in one partition, whose offsets are their order.
    last = spark.sql(
        "SELECT CAST(key AS STRING) AS name, CAST(CAST(max_by(value, offset) AS STRING) AS BIGINT) AS n, "
        "count(1) AS records, count(DISTINCT partition) AS partitions FROM written GROUP BY key"
    ).collect()
    until = [read.get(p, 0) for p in range(int(given["load"]["partitions"]))]
    lines = spark.read.format(FORMAT).options(**given["load"], until_rows=",".join(map(str, until))).load()
    words = lines.selectExpr("explode(split(value, ' ')) AS word", "timestamp_millis(due_ms) AS timestamp")
    expected = words.groupBy(window(words.timestamp, "10 seconds", "5 seconds"), words.word).count()
    names = expected.selectExpr("CONCAT(window.start, ' ', word) AS name", "count AS n").collect()
    due, found = {r["name"]: r["n"] for r in names}, {r["name"]: r["n"] for r in last}
    wrong = {name: (found.get(name), due.get(name)) for name in {*found, *due} if found.get(name) != due.get(name)}
    verdict = {
        "rows": sum(read.values()), "counts": len(due), "records": sum(r["records"] for r in last),
        "in_one_partition": all(r["partitions"] == 1 for r in last), "wrong": wrong,
    }  # fmt: skip
    sys.stdout.write(json.dumps(verdict) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
