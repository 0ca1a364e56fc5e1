"""A program: supervised queries read topics whose offsets are not all rows, and one that grows while an epoch lasts.

Written in transactions, at both isolation levels, the last of which is aborted; compacted; and grown from four
partitions to six. Epochs are long, so that none ends by itself. It prints one line of JSON. In a process of its own,
because the class path of the driver's JVM is that of its first session.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.kafka.counting_a_topic import (
    GROWN,
    KEYS,
    LOGIN,
    PARTITIONS,
    TIMES,
    Looking,
    Topic,
    options,
    properties,
    settle,
)

from barograph.engines.spark.conf import class_path, plugin_jar, plugin_settings
from barograph.engines.spark.driver.application import supervisor_of_session
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import open_session, real_time
from barograph.kafka import Broker, connector_jars, start_broker
from barograph.priority.service import serve

EPOCH_S = 60.0
GROWN_IN_S = 20.0  # far less than an epoch
TRANSACTIONS, ROWS = 100, 10
WRITTEN = 210  # rows of the topic that is compacted, in three parts: what is written last is not compacted
STRINGS = "org.apache.kafka.common.serialization.StringSerializer"


class Reading:
    """A query that keeps one number for each key of a topic, and writes each change of it into another."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, topic: str, number: str, **more: str) -> None:
        self._spark, self._broker, self._folder, self._topic = spark, broker, folder, topic
        self._number, self._more = number, more

    def build(self) -> DataStreamWriter:
        given = {**options(self._broker), "subscribe": self._topic, "startingOffsets": "earliest", **self._more}
        rows = self._spark.readStream.format("kafka").options(**given).load()
        rows = rows.selectExpr("cast(key as string) as key", "cast(value as string) as value")
        out = rows.groupBy("key").agg(expr(self._number).alias("value"))
        written = out.selectExpr("key", "cast(value as string) as value").writeStream.format("kafka")
        written = written.options(**options(self._broker)).option("topic", self._out).outputMode("update")
        written = written.option("checkpointLocation", str(self._folder / self._out)).queryName(self._topic)
        return real_time(written, EPOCH_S)

    @property
    def _out(self) -> str:
        return "-".join([self._topic, *self._more.values()]) + "-numbers"

    @contextmanager
    def runs(self, supervisor: Supervisor) -> Iterator[Looking]:
        create(self._spark, self._broker, self._out)
        query = supervisor.start(self.build)  # without a target for recovery, which would end epochs
        try:
            looking = Looking(supervisor.engine, self._topic)
            settle(lambda: looking.again().instances == PARTITIONS, f"{self._out}: its sources run")
            yield looking
        finally:
            query.stop()

    def last(self) -> dict[str, int]:
        """The last number of each key. None falls, so a row that was counted twice shows."""
        rows = as_batch(self._spark, self._broker, self._out)
        return {r["key"]: r["max(value)"] for r in rows.groupBy("key").max("value").collect()}


def as_batch(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    rows = spark.read.format("kafka").options(**options(broker)).option("subscribe", topic).load()
    return rows.selectExpr("cast(key as string) as key", "cast(cast(value as string) as long) as value")


def create(spark: SparkSession, broker: Broker, topic: str, **config: str) -> None:
    jvm: Any = spark._jvm
    settings = jvm.java.util.HashMap()
    for name, value in config.items():
        settings.put(name.replace("_", "."), value)
    topics, some, none = jvm.java.util.ArrayList(), jvm.java.util.Optional.of, jvm.java.util.Optional.empty
    topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(topic, some(PARTITIONS), none()).configs(settings))
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties(spark, broker))
    admin.createTopics(topics).all().get()
    admin.close()


def write_transactions(spark: SparkSession, broker: Broker, topic: str) -> None:
    """One more at the end is aborted."""
    jvm: Any = spark._jvm
    clients = jvm.org.apache.kafka.clients.producer
    given = properties(spark, broker, transactional_id=f"to-{topic}", key_serializer=STRINGS, value_serializer=STRINGS)
    producer = clients.KafkaProducer(given)
    producer.initTransactions()
    for number in range(TRANSACTIONS + 1):
        producer.beginTransaction()
        for row in range(number * ROWS, (number + 1) * ROWS):
            producer.send(clients.ProducerRecord(topic, row % PARTITIONS, str(row % KEYS), str(row)))
        if number < TRANSACTIONS:
            producer.commitTransaction()
        else:
            producer.flush()
            producer.abortTransaction()
    producer.close()


def idle_part(engine: SparkEngine) -> float:
    """Of the time of the sources since the last call."""
    now = engine.observe("idle part")
    sources = {o.name for t in now.topologies for o in t.operators if o.source}
    rows = [at for at, instance in enumerate(now.metrics.instances) if instance.operator in sources]
    spent = {name: sum(float(now.metrics.columns[name][at]) for at in rows) for name in TIMES}
    return spent["idle_s"] / max(1e-9, sum(spent.values()))


def counts(rows: int) -> Counter[str]:
    return Counter(str(k % KEYS) for k in range(rows))


def in_transactions(spark: SparkSession, broker: Broker, supervisor: Supervisor, folder: Path, level: str) -> Any:
    topic = level.replace("_", "-")
    create(spark, broker, topic)
    reading = Reading(spark, broker, folder, topic, "count(*)", **{"kafka.isolation.level": level})
    expected = counts((TRANSACTIONS + (level == "read_uncommitted")) * ROWS)
    with reading.runs(supervisor) as looking:
        settle(lambda: looking.again().backlog == 0, f"{level}: it waits")
        idle_part(supervisor.engine)
        write_transactions(spark, broker, topic)
        idle = idle_part(supervisor.engine)
        settle(lambda: reading.last() == expected, f"{level}: all rows are counted")
        settle(lambda: looking.again().backlog == 0, f"{level}: nothing is left to read", EPOCH_S / 2)
        return {"idle_part": idle, "counts": reading.last(), "expected": expected}


def compacted(spark: SparkSession, broker: Broker, supervisor: Supervisor, folder: Path) -> Any:
    at_once = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.001", "delete_retention_ms": "0"}
    create(spark, broker, "compacted", cleanup_policy="compact", **at_once)
    for part in range(3):
        rows = spark.range(part * WRITTEN // 3, (part + 1) * WRITTEN // 3, 1, 1)
        rows = rows.selectExpr(f"cast(id % {KEYS} as string) as key", "cast(id as string) as value")
        rows.write.format("kafka").options(**options(broker)).option("topic", "compacted").save()
    settle(lambda: as_batch(spark, broker, "compacted").count() < WRITTEN, "the topic is compacted")
    expected = {str(k % KEYS): k for k in range(WRITTEN)}
    reading = Reading(spark, broker, folder, "compacted", "max(cast(value as long))")
    with reading.runs(supervisor) as looking:
        settle(lambda: reading.last() == expected, "the last values are read")
        settle(lambda: looking.again().backlog == 0, "nothing is left to read of the compacted topic", EPOCH_S / 2)
        return {"last": reading.last(), "expected": expected}


def grown(spark: SparkSession, broker: Broker, supervisor: Supervisor, folder: Path) -> Any:
    topic = Topic(spark, broker)
    topic.produce(700)
    reading = Reading(spark, broker, folder, "lines", "count(*)", **{"kafka.isolation.level": "read_committed"})
    with reading.runs(supervisor) as looking:
        settle(lambda: looking.again().backlog == 0, "it waits for rows")
        topic.grow(GROWN)
        since_s = time.monotonic()
        settle(lambda: looking.again().instances == GROWN, "the new partitions are read", GROWN_IN_S)
        took_s = time.monotonic() - since_s
        for partition in range(GROWN):
            topic.produce(50, partition)
        expected = counts(topic.rows)
        settle(lambda: reading.last() == expected, "the new partitions' rows are counted", EPOCH_S / 2)
        return {"took_s": took_s, "counts": reading.last(), "expected": expected}


def main(folder: Path) -> None:
    jars = class_path(plugin_jar(), *connector_jars())
    local = {"spark.master": "local[10]", "spark.sql.shuffle.partitions": "2", "spark.driver.bindAddress": "127.0.0.1"}
    with start_broker(login=LOGIN, partitions=PARTITIONS) as broker:
        spark = open_session("odd topics", plugin_settings(), jars, local, log=folder / "jvm.log")
        supervisor = supervisor_of_session(serve)
        found = {
            "read_uncommitted": in_transactions(spark, broker, supervisor, folder, "read_uncommitted"),
            "read_committed": in_transactions(spark, broker, supervisor, folder, "read_committed"),
            "compacted": compacted(spark, broker, supervisor, folder),
            "grown": grown(spark, broker, supervisor, folder),
        }
        spark.stop()
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
