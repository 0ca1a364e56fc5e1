"""A program: shapes that read a Kafka topic, with a move, scales and a killed executor. It prints one line of JSON.

In a process of its own, because the class path of the driver's JVM is that of its first session. The rows are those of
the replay source; the driver writes them into the topic, each partition in order, so that offset k is row k.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from tests.engines.spark.shapes.running import running
from tests.engines.spark.shapes.shape import RATE, Shape
from tests.engines.spark.shapes.table import SHAPES

from barograph.kafka import Broker, connector_jars, start_broker
from barograph.testing.local_cluster import LocalCluster, open_cluster_session, with_testing_jar
from barograph.workloads.parts import read_as_batch
from barograph.workloads.topic import Topic

ROWS = 20_000  # of each partition; no test lasts so long
TICK_S = 0.1


@contextmanager
def produced(spark: SparkSession, broker: Broker, shape: Shape, topic: str) -> Iterator[None]:
    """Rows at the shape's rate, until the block ends."""
    (replay,) = shape.replays()
    rows = sorted((r["k"], r["partition"], r["value"]) for r in read_as_batch(spark, replay, (ROWS, ROWS)).collect())
    jvm = spark._jvm
    assert jvm is not None
    settings = jvm.java.util.Properties()
    for name, value in {"bootstrap.servers": broker.address, **broker.login.options()}.items():
        settings.put(name, value)
    for side in ("key", "value"):
        settings.put(f"{side}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
    producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(settings)
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord
    ended = threading.Event()

    def produce() -> None:
        per_tick = int(RATE * TICK_S)
        for at in range(0, len(rows), per_tick):
            for k, partition, value in rows[at : at + per_tick]:
                producer.send(record(topic, partition, None, f"{partition} {k} {value}"))
            if ended.wait(TICK_S):
                return

    thread = threading.Thread(target=produce, name="producer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.close()


def rows_of(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    read = spark.readStream.format("kafka").options(**Topic(topic, broker.address, broker.login.options()).options())
    rows = read.option("subscribe", topic).option("startingOffsets", "earliest").load()
    parts = rows.selectExpr("split(cast(value as string), ' ') as parts")
    return parts.selectExpr("int(parts[0]) as partition", "bigint(parts[1]) as k", "bigint(parts[2]) as value")


def tried(stage: LocalCluster, broker: Broker, shape: Shape) -> dict[str, object]:
    topic = shape.name.replace(" ", "-").replace(",", "")
    with (
        produced(stage.spark, broker, shape, topic),
        running(stage, shape, read=lambda: rows_of(stage.spark, broker, topic)) as query,
    ):
        query.move("source")
        query.scale(shape.live[0], 3)
        for operator in shape.kept[:1]:
            query.scale(operator, 3)
        query.await_flow()
        query.kill("source")
        counts = query.counts()
        found = query.judged()
    return {"counts": counts, "due": found.due, "dropped": found.dropped, "faults": found.faults}


def main(names: list[str]) -> None:
    jars = ":".join(map(str, connector_jars()))
    paths = {key: value for key, value in with_testing_jar().items() if key.endswith("extraClassPath")}
    conf = {key: f"{value}:{jars}" for key, value in paths.items()}
    with start_broker() as broker, open_cluster_session(conf=conf) as opened, opened.steerable() as stage:
        found = {shape.name: tried(stage, broker, shape) for shape in SHAPES if shape.name in names}
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
