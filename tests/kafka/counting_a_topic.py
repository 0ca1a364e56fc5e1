"""A program: a supervised query counts the keys of a topic while it falls behind, while the topic grows from four
partitions to six, and while the broker is killed and started again. The broker wants a password.

It prints one line of JSON: what became of it. In a process of its own, because the class path of the driver's JVM is
that of its first session.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import barograph
from barograph.cli.status import table
from barograph.engines.spark.conf import class_path, plugin_jar, plugin_settings
from barograph.engines.spark.driver.application import supervisor_of_session
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import open_session, real_time
from barograph.kafka import Broker, Login, connector_jars, start_broker
from barograph.model import Instance, Plan, Snapshot
from barograph.priority.service import serve

KEYS = 7
PARTITIONS, GROWN = 4, 6  # from five on the connector deals out the partitions in another order
MANY = 300_000
LOGIN = Login("reader", "s3cret")
TIMES = ("idle_s", "busy_s", "blocked_s")
# Kafka's own patience of a minute is shortened, so that the test sees its TimeoutException soon.
IMPATIENT = {"kafka.request.timeout.ms": "2000", "kafka.default.api.timeout.ms": "3000"}


def options(broker: Broker) -> dict[str, str]:
    given = {"bootstrap.servers": broker.address, **LOGIN.options()}
    return {f"kafka.{name}": value for name, value in given.items()}


def properties(spark: SparkSession, broker: Broker, **more: str) -> Any:
    """Of a client of Kafka in the driver's JVM, which is given them as Java has them."""
    jvm: Any = spark._jvm
    given = jvm.java.util.Properties()
    for name, value in {**options(broker), **more}.items():
        given.put(name.removeprefix("kafka.").replace("_", "."), value)
    return given


def settle(condition: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.5)  # looking at the state takes a job


class Topic:
    """Produces rows to it and knows how many there are."""

    def __init__(self, spark: SparkSession, broker: Broker) -> None:
        self._spark, self._broker = spark, broker
        self.rows = 0

    def produce(self, count: int, partition: int | None = None) -> None:
        to = [] if partition is None else [f"{partition} as partition"]
        rows = self._spark.range(self.rows, self.rows + count, 1, 1)  # a task: the other seats are the query's
        rows = rows.selectExpr(f"cast(id % {KEYS} as string) as key", "'x' as value", *to)
        rows.write.format("kafka").options(**options(self._broker)).option("topic", "lines").save()
        self.rows += count

    def grow(self, partitions: int) -> None:
        jvm: Any = self._spark._jvm
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties(self._spark, self._broker))
        wanted = jvm.java.util.HashMap()
        wanted.put("lines", jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(partitions))
        admin.createPartitions(wanted).all().get()
        admin.close()


def counted(spark: SparkSession, checkpoint: Path) -> dict[str, int]:
    try:
        rows = spark.read.format("statestore").load(str(checkpoint)).selectExpr("key.key", "value.count").collect()
    except PySparkException:  # no epoch is committed yet
        return {}
    return {r["key"]: r["count"] for r in rows}


class Looking:
    """At the sources, since the last look: rows arrived and read; the backlog, None where it is unknown. time_s: idle,
    busy and blocked, of instances that had a backlog at the last two looks, or that had none."""

    def __init__(self, engine: SparkEngine, topology: str = "counting") -> None:
        self._engine, self._topology = engine, topology
        self.instances = self.arrived = self.read = 0
        self.backlog: int | None = None
        self._had: dict[Instance, float] = {}
        self.time_s = {had: dict.fromkeys(TIMES, 0.0) for had in (True, False)}

    def again(self) -> "Looking":
        now = self._engine.observe("test")
        found = next((t for t in now.topology_metrics if t.topology == self._topology), None)
        self.backlog = int(found.backlog_rows) if found is not None and found.backlog_known else None
        sources = [o for t in now.topologies for o in t.operators if o.source]
        self.instances = sum(o.parallelism for o in sources)
        rows = [now.metrics.of_operator(self._topology, o.name) for o in sources]
        self.arrived += int(sum(r.arrived for r in rows))
        self.read += int(sum(r.executed for r in rows))
        self._times(now, {o.name for o in sources})
        return self

    def _times(self, now: Snapshot, sources: set[str]) -> None:
        pending = now.metrics.columns["pending"]
        before, self._had = self._had, {}
        for at, instance in enumerate(now.metrics.instances):
            if instance.operator in sources:
                self._had[instance] = float(pending[at])
                if instance in before and (pending[at] > 0) == (before[instance] > 0):
                    for name, seconds in self.time_s[bool(pending[at] > 0)].items():
                        self.time_s[bool(pending[at] > 0)][name] = seconds + float(now.metrics.columns[name][at])


def main(folder: Path) -> None:
    jars = class_path(plugin_jar(), *connector_jars())
    local = {"spark.master": "local[10]", "spark.sql.shuffle.partitions": "2", "spark.driver.bindAddress": "127.0.0.1"}
    with start_broker(login=LOGIN, partitions=PARTITIONS) as broker:
        spark = open_session("topic", plugin_settings(), jars, local, log=folder / "jvm.log")
        checkpoint = folder / "checkpoint"

        def build() -> DataStreamWriter:
            read = spark.readStream.format("kafka").options(**IMPATIENT, **options(broker)).option("subscribe", "lines")
            read = read.option("startingOffsets", "earliest")
            counts = read.load().selectExpr("cast(key as string) as key").groupBy("key").count()
            out = counts.selectExpr("key", "cast(count as string) as value").writeStream.format("kafka")
            out = out.options(**options(broker)).option("topic", "counts").queryName("counting")
            out = out.option("checkpointLocation", str(checkpoint)).outputMode("update")
            return real_time(out, 2.0)

        topic = Topic(spark, broker)
        topic.produce(700)
        query = barograph.start(build)
        settle(lambda: sum(counted(spark, checkpoint).values()) == 700, "the first rows are counted")
        supervisor = supervisor_of_session(serve)
        engine = supervisor.engine
        looking = Looking(engine)
        settle(lambda: looking.again().backlog == 0, "nothing is left to read")
        found: dict[str, Any] = {"table": table(supervisor.status())}

        looking = Looking(engine)
        since_s = time.monotonic()
        settle(lambda: looking.again().backlog == 0 and time.monotonic() - since_s > 4.0, "some seconds without rows")
        found["nothing_to_read_s"] = looking.time_s[False]

        looking.arrived = looking.read = 0
        engine.gates.pause("counting")
        settle(lambda: engine.is_still("counting", 1.0), "the source rests")
        topic.produce(400)
        settle(lambda: looking.again().backlog == 400, "the backlog is seen while nothing is read")
        found["behind"] = {"backlog": looking.backlog, "arrived": looking.arrived, "read": looking.read}
        engine.gates.pause("counting", False)
        settle(lambda: looking.again().backlog == 0, "it has caught up")
        found["caught_up"] = {"arrived": looking.arrived, "read": looking.read}

        engine.gates.pause("counting")
        settle(lambda: engine.is_still("counting", 1.0), "the source rests")
        topic.produce(MANY)
        settle(lambda: looking.again().backlog == MANY, "a large backlog is seen")
        engine.gates.pause("counting", False)
        engine.observe("test")  # the time of the rest is not that of reading
        looking = Looking(engine)
        settle(lambda: looking.again().backlog == 0, "it has caught up again")
        found["much_to_read_s"] = looking.time_s[True]

        looking.arrived = looking.read = 0
        topic.grow(GROWN)
        settle(lambda: looking.again().instances == GROWN, "the new partitions are seen")
        supervisor.apply(Plan(cuts=("counting",)))
        settle(lambda: looking.again().backlog == 0, "of all partitions the ends are known")
        found["grown"] = {"arrived": looking.arrived, "read": looking.read}
        for partition in range(GROWN):
            topic.produce(50, partition)
        settle(lambda: sum(counted(spark, checkpoint).values()) == topic.rows, "the new partitions' rows are counted")
        settle(lambda: looking.again().backlog == 0, "nothing is left to read of them")
        found["grown_and_filled"] = {"arrived": looking.arrived, "read": looking.read}

        broker.kill()
        looked_s = time.monotonic()
        for _ in range(5):
            looking.again()
        supervisor.status()
        found["looks_took_s"] = time.monotonic() - looked_s
        settle(lambda: query.doing != "running", "the query dies")
        died_s = time.monotonic()
        settle(lambda: time.monotonic() - died_s > 3.0, "some more seconds without a broker")
        broker.start()
        topic.produce(700)
        settle(lambda: sum(counted(spark, checkpoint).values()) >= topic.rows, "rows after the outage are counted")
        settle(lambda: looking.again().backlog == 0, "the ends are known again")
        found |= {
            "counts": counted(spark, checkpoint),
            "deaths": [r.cause for r in query.restarts],
            "active": query.isActive,
        }
        found["expected"] = Counter(str(k % KEYS) for k in range(topic.rows))
        query.stop()
        spark.stop()
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
