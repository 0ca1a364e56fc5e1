"""A program: a supervised query counts the keys of a topic while the broker is killed and started again.

It prints one line of JSON: what became of it. In a process of its own, because the class path of the driver's JVM is
that of its first session.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import barograph
from barograph.cli.status import table
from barograph.engines.spark.conf import class_path, plugin_jar, plugin_settings
from barograph.engines.spark.driver.application import supervisor_of_session
from barograph.engines.spark.session import open_session, real_time
from barograph.kafka import Broker, connector_jars, start_broker
from barograph.priority.service import serve

KEYS = 7
# Kafka's own patience of a minute is shortened, so that the test sees its TimeoutException soon.
IMPATIENT = {"kafka.request.timeout.ms": "2000", "kafka.default.api.timeout.ms": "3000"}


def settle(condition: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.5)  # looking at the state takes a job


def produce(spark: SparkSession, broker: Broker, first: int, count: int) -> None:
    rows = spark.range(first, first + count).selectExpr(f"cast(id % {KEYS} as string) as key", "'x' as value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", broker.address).option("topic", "lines").save()


def counted(spark: SparkSession, checkpoint: Path) -> dict[str, int]:
    try:
        rows = spark.read.format("statestore").load(str(checkpoint)).selectExpr("key.key", "value.count").collect()
    except PySparkException:  # no epoch is committed yet
        return {}
    return {r["key"]: r["count"] for r in rows}


def main(folder: Path) -> None:
    jars = class_path(plugin_jar(), *connector_jars())
    local = {"spark.master": "local[6]", "spark.sql.shuffle.partitions": "2", "spark.driver.bindAddress": "127.0.0.1"}
    with start_broker() as broker:
        spark = open_session("topic", plugin_settings(), jars, local, log=folder / "jvm.log")
        checkpoint = folder / "checkpoint"

        def build() -> DataStreamWriter:
            read = spark.readStream.format("kafka").options(**IMPATIENT).option("subscribe", "lines")
            read = read.option("kafka.bootstrap.servers", broker.address).option("startingOffsets", "earliest")
            counts = read.load().selectExpr("cast(key as string) as key").groupBy("key").count()
            out = counts.selectExpr("key", "cast(count as string) as value").writeStream.format("kafka")
            out = out.option("kafka.bootstrap.servers", broker.address).option("topic", "counts").queryName("counting")
            out = out.option("checkpointLocation", str(checkpoint)).outputMode("update")
            return real_time(out, 2.0)

        produce(spark, broker, 0, 700)
        query = barograph.start(build)
        settle(lambda: sum(counted(spark, checkpoint).values()) == 700, "the first rows are counted")
        supervisor = supervisor_of_session(serve)
        status = supervisor.status()
        broker.kill()
        settle(lambda: query.doing != "running", "the query dies")
        died_s = time.monotonic()
        settle(lambda: time.monotonic() - died_s > 3.0, "some more seconds without a broker")
        broker.start()
        produce(spark, broker, 700, 700)
        settle(lambda: sum(counted(spark, checkpoint).values()) >= 1400, "the rows after the outage are counted")
        found = {
            "counts": counted(spark, checkpoint),
            "expected": dict(Counter(str(k % KEYS) for k in range(1400))),
            "backlog": [t["backlog_rows"] for t in status["topologies"]],
            "table": table(status),
            "deaths": [r.cause for r in query.restarts],
            "active": query.isActive,
        }
        query.stop()
        spark.stop()
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
