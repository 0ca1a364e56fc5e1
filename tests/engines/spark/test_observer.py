"""Metrics and latency on a real cluster, compared with the source's function, the system's clocks and the rows."""

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.latency import bucket_of
from barograph.engines.spark.bridge.reports import LifeReport
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.naming import named
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.model import Instance, InstanceMetrics, Load, NodeMetrics, Plan, TopologyMetrics
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    return shared_stage


@dataclass
class Eye:
    """The sum of all cycles that were observed on the cluster."""

    stage: LocalCluster
    sums: dict[Instance, InstanceMetrics] = field(default_factory=dict)
    traffic: dict[tuple[str, str, str], NDArray[np.float64]] = field(default_factory=dict)
    latency: dict[str, list[TopologyMetrics]] = field(default_factory=dict)
    nodes: tuple[NodeMetrics, ...] = ()
    gathering: bool = False

    def look(self) -> None:
        """Observe a cycle; while gathering, let the cycle go on."""
        if self.gathering:
            self.stage.engine.refresh()
            return
        now = self.stage.engine.observe()
        for i in now.metrics.instances:
            self.sums[i] = plus(self.sums.get(i, InstanceMetrics()), now.metrics.row(i))
        for edge in now.traffic:
            key = (edge.topology, edge.source, edge.target)
            self.traffic[key] = self.traffic.get(key, np.zeros_like(edge.rows)) + edge.rows
        for told in now.topology_metrics:
            self.latency.setdefault(told.topology, []).append(told)
        self.nodes = now.node_metrics

    def settle(
        self, query: StreamingQuery | Supervised, condition: Callable[[], bool], timeout_s: float = 120.0
    ) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "the condition did not become true in time"
            time.sleep(0.1)
            require_alive(query)
            self.look()

    def of(self, name: str, index: int = 0) -> InstanceMetrics:
        """``topology/operator``."""
        topology, operator = name.split("/")
        return self.sums.get(Instance(topology, operator, index), InstanceMetrics())

    def life(self, name: str, index: int = 0) -> LifeReport:
        topology, operator = name.split("/")
        epoch = self.stage.engine.present(topology)
        assert epoch is not None
        return epoch.lives[Instance(topology, operator, index)]

    def end_epoch(self, query: StreamingQuery) -> None:
        """Cut, and wait until every instance of the epoch that ended has sent its last report."""
        epoch = self.stage.engine.present(query.name)
        assert epoch is not None
        outcome = self.stage.engine.apply(Plan(cuts=(query.name,)))
        assert outcome.ok, outcome.refused
        self.settle(query, lambda: all(life.ended_ms > 0 for life in epoch.lives.values()))
        self.look()


def plus(a: InstanceMetrics, b: InstanceMetrics) -> InstanceMetrics:
    """Counts are differences and add up; pending is as of now."""
    return InstanceMetrics(
        a.arrived + b.arrived, a.executed + b.executed, a.emitted + b.emitted, b.pending, a.cpu_s + b.cpu_s,
        a.busy_s + b.busy_s, a.idle_s + b.idle_s, a.blocked_s + b.blocked_s,
    )  # fmt: skip


@pytest.fixture(scope="module")
def eye(stage: LocalCluster) -> Eye:
    return Eye(stage)


@contextmanager
def running(eye: Eye, name: str, frame: DataFrame, sink: str = "noop") -> Iterator[tuple[StreamingQuery, Path]]:
    """The query, all of whose instances are up, and its checkpoint."""
    with tempfile.TemporaryDirectory(prefix="barograph-test-", ignore_cleanup_errors=True) as folder:
        writer = frame.writeStream.queryName(name).outputMode("update").format(sink)
        query = real_time(writer.option("checkpointLocation", folder), 300.0).start()
        try:
            eye.settle(query, lambda: has_all_lives(eye.stage, name))
            yield query, Path(folder)
        finally:
            query.stop()


def has_all_lives(stage: LocalCluster, name: str) -> bool:
    epoch = stage.engine.present(name)
    return epoch is not None and len(epoch.lives) == len(epoch.seated) > 0


def load(eye: Eye, replay: Replay) -> DataFrame:
    return eye.stage.spark.readStream.format(FORMAT).options(**replay.options()).load()


def test_traffic_and_counts_are_what_the_source_says(eye: Eye) -> None:
    """Fields, shuffle and global, over two epochs: every row between every pair of instances."""
    replay = Replay(Load.parse("constant 1500").schedule(1.0), 2, LineShape(seed=7), numbers=True, close_s=8.0)
    rows = replay.rows()
    keyed = named(load(eye, replay).repartition(3, col("value")).where("k >= 0"), "keyed")
    spread = named(keyed.repartition(4).where("k >= 0"), "spread")
    with running(eye, "groupings", spread.repartition(1).where("k >= 0")) as (query, checkpoint):
        eye.settle(query, lambda: eye.of("groupings/source", 0).executed > 1000)
        eye.end_epoch(query)  # counts go on over a boundary
        eye.settle(query, lambda: sum(eye.of("groupings/source", p).executed for p in range(2)) >= sum(rows))
        eye.end_epoch(query)
        assert tuple(committed_offsets(checkpoint)) == rows

    expected = np.zeros((2, 3))
    options = replay.options() | {"until_rows": ",".join(map(str, rows))}
    truth = eye.stage.spark.read.format(FORMAT).options(**options).load()
    receivers = truth.selectExpr("partition", "pmod(hash(value), 3) as receiver").groupBy("partition", "receiver")
    for r in receivers.count().collect():
        expected[r["partition"], r["receiver"]] = r["count"]
    assert eye.traffic[("groupings", "source", "keyed")].tolist() == expected.tolist()
    shuffled = eye.traffic[("groupings", "keyed", "spread")]
    assert shuffled.sum(axis=1).tolist() == expected.sum(axis=0).tolist()
    # Each sender sends its rows to the receivers in turn, and begins again in each epoch.
    assert all(max(row) - min(row) <= 3 for row in shuffled.tolist())
    assert eye.traffic[("groupings", "spread", "map")].tolist() == [[n] for n in shuffled.sum(axis=0).tolist()]

    for p in range(2):
        source = eye.of("groupings/source", p)
        assert (source.arrived, source.executed, source.emitted, source.pending) == (rows[p], rows[p], rows[p], 0)
    for operator, count in (("keyed", 3), ("spread", 4), ("map", 1)):
        for i in range(count):
            done = eye.of(f"groupings/{operator}", i)
            assert done.arrived == done.executed == done.emitted
            assert done.pending == 0
    assert eye.of("groupings/map").executed == sum(rows)


def test_busy_idle_and_blocked_are_distinguished_and_add_up(eye: Eye) -> None:
    """A slow operator is busy, the one before it waits for room, and one with a slow source waits for rows."""
    lines = LineShape(seed=3, words_per_line=400)
    fast = Replay(Load.parse("constant 5000").schedule(1.0), 1, lines)
    slow = Replay(Load.parse("constant 2").schedule(1.0), 1, lines)
    feed = named(load(eye, fast).repartition(1).where("k >= 0"), "feed")
    work = "aggregate(sequence(1, 60000), 0L, (a, x) -> a + x * k) as work"
    crawl = named(feed.repartition(1).selectExpr("*", work), "crawl")
    calm = load(eye, slow).repartition(1).where("k >= 0")
    with running(eye, "pressed", crawl) as (query, _), running(eye, "calm", calm):
        eye.settle(query, lambda: eye.of("pressed/crawl").executed > 500)
        eye.settle(query, lambda: wall_s(eye, "pressed/crawl") > 8)
        for name in ("pressed/crawl", "pressed/feed", "calm/map"):
            # Metrics lag one report behind the clock; a wrong sum would never come near.
            eye.settle(query, lambda name=name: adds_up(eye, name), 30.0)  # type: ignore[misc]
        crawls, feeds, calms = (eye.of(name) for name in ("pressed/crawl", "pressed/feed", "calm/map"))
        assert crawls.busy_s > 0.8 * wall_s(eye, "pressed/crawl")
        assert feeds.blocked_s > 0.6 * wall_s(eye, "pressed/feed")
        assert calms.idle_s > 0.8 * wall_s(eye, "calm/map")

        told = eye.latency["pressed"][-1]
        assert told.backlog_rows > 1000
        assert told.latency_due is None, "no column says when these rows fell due"
        # Sender and receiver report at different moments, so one look may find as many executed as sent.
        eye.settle(query, lambda: eye.of("pressed/crawl").pending > 0, 10.0)
        assert len(eye.nodes) == 3
        assert all(n.memory_used_mb > 50 for n in eye.nodes)


def wall_s(eye: Eye, name: str) -> float:
    return time.time() - eye.life(name).started_ms / 1000


def adds_up(eye: Eye, name: str) -> bool:
    row = eye.of(name)
    return math.isclose(row.busy_s + row.idle_s + row.blocked_s, wall_s(eye, name), rel_tol=0.05)


def test_cpu_is_what_the_threads_own_clock_says(eye: Eye) -> None:
    replay = Replay(Load.parse("constant 3000").schedule(1.0), 1, LineShape(seed=3))
    work = "aggregate(sequence(1, 40000), 0L, (a, x) -> a + x * k) as work"
    with running(eye, "worker", load(eye, replay).repartition(1).selectExpr("*", work)) as (query, _):
        eye.settle(query, lambda: eye.of("worker/map").executed > 200)
        low, first, high = told_between_clocks(eye, query, "worker/map")
        eye.settle(query, lambda: eye.of("worker/map").cpu_s > first + 5, 90.0)
        later_low, second, later_high = told_between_clocks(eye, query, "worker/map")
        assert later_low - high <= second - first <= later_high - low
        assert later_high - low <= 1.5 * (second - first), "the readings are too far apart to prove anything"


def told_between_clocks(eye: Eye, query: StreamingQuery, name: str) -> tuple[float, float, float]:
    """The thread's clock, CPU time that was reported after this reading, and the clock again."""
    life = eye.life(name)
    low = clock_s(life)
    for _ in range(2):  # the first report that arrives may have been made before the reading
        told = eye.of(name).cpu_s
        eye.settle(query, lambda told=told: eye.of(name).cpu_s != told, 30.0)  # type: ignore[misc]
    return low, eye.of(name).cpu_s, clock_s(life)


def clock_s(life: LifeReport) -> float:
    """CPU the thread has used, as the kernel counts it in nanoseconds."""
    return int(Path(f"/proc/{life.pid}/task/{life.tid}/schedstat").read_text().split()[0]) / 1e9


def test_latency_is_that_of_every_row(eye: Eye) -> None:
    """Rows that have been due for up to 20 s when they are read, collected with the time at which each came out."""
    spark = eye.stage.spark
    start_ms = int((time.time() - 20) * 1000)
    replay = Replay(
        Load.parse("constant 300").schedule(1.0), 2, LineShape(seed=9), numbers=True, close_s=24.0, start_ms=start_ms,
        read_time=True,
    )  # fmt: skip
    rows = sum(replay.rows())
    out = "cast(reflect('java.lang.System', 'currentTimeMillis') as bigint) as out_ms"
    frame = load(eye, replay).repartition(2).selectExpr(
        "due_ms as barograph_due_ms", "read_ms as barograph_read_ms", out
    )  # fmt: skip
    eye.look()
    eye.gathering = True  # one cycle from the first row to the last
    try:
        with running(eye, "timed", frame, "memory") as (query, _):
            eye.settle(query, lambda: sum(eye.life("timed/source", p).rows_read for p in range(2)) >= rows)
            eye.end_epoch(query)
            eye.gathering = False
            eye.look()
            eye.settle(query, lambda: spark.table("timed").count() == rows)
            collected = spark.table("timed").collect()
    finally:
        eye.gathering = False
    (told,) = [t for t in eye.latency["timed"] if t.completed_rows > 0]
    assert told.completed_rows == rows
    for found, since in ((told.latency_due, "barograph_due_ms"), (told.latency_read, "barograph_read_ms")):
        ordered = sorted(r["out_ms"] - r[since] for r in collected)
        assert found is not None
        exact = [ordered[math.ceil(p * rows) - 1] for p in (0.5, 0.99, 0.999)]
        assert [found.p50, found.p99, found.p999] == [pytest.approx(e, rel=0.01, abs=5) for e in exact]
        assert found.mean == pytest.approx(sum(ordered) / rows, rel=0.01, abs=5)
    assert told.latency_due is not None
    assert told.latency_read is not None
    assert told.latency_due.p50 - told.latency_read.p50 > 2000  # rows were due long before anything read them


def test_an_aggregate_emits_a_row_for_every_row_with_its_own_time(eye: Eye) -> None:
    """The latency of a word count needs this: last() in an emitted row is of the row that caused it."""
    spark = eye.stage.spark
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    start_ms = int(time.time() * 1000)
    replay = Replay(
        Load.parse("constant 400").schedule(1.0), 2, LineShape(seed=4), numbers=True, close_s=5.0, start_ms=start_ms
    )
    rows = replay.rows()
    own = load(eye, replay).selectExpr("partition", "shiftleft(due_ms, 21) | k as own")
    frame = own.groupBy("partition").agg(expr("count(1) as n"), expr("last(own) as own"))
    with running(eye, "owned", frame, "memory") as (query, _):
        eye.settle(query, lambda: sum(eye.life("owned/source", p).rows_read for p in range(2)) >= sum(rows))
        eye.end_epoch(query)
        eye.settle(query, lambda: spark.table("owned").count() == sum(rows))
        out = sorted((r["partition"], r["n"], r["own"]) for r in spark.table("owned").collect())
    options = replay.options() | {"until_rows": ",".join(map(str, rows))}
    truth = spark.read.format(FORMAT).options(**options).load().collect()
    assert out == sorted((r["partition"], r["k"] + 1, (r["due_ms"] << 21) | r["k"]) for r in truth)


def test_words_carry_their_own_times_through_the_aggregate(eye: Eye) -> None:
    """Words of the source come out with both times, and the counts in the state are exact."""
    with eye.stage.query("timed-words", rate=500) as counting:

        def timed() -> list[TopologyMetrics]:
            # Counts are reported several times a second, latency once: a cycle may have rows and no times yet.
            return [t for t in eye.latency.get("timed-words", []) if t.latency_due is not None]

        eye.settle(counting.query, lambda: sum(t.completed_rows for t in timed()) > 1000)
        told = timed()[-1]
        assert told.latency_due is not None
        assert told.latency_read is not None
        assert told.backlog_known
        assert told.latency_read.p50 <= told.latency_due.p50
        assert counting.verdict().exact


def test_the_queue_in_front_of_a_slow_operator_is_bounded_in_time(eye: Eye) -> None:
    """10 ms a row at ten times the rate it can do: 0.2 s of work wait in front of it, the rest at the source."""
    replay = Replay(Load.parse("constant 1000").schedule(1.0), 2, LineShape(seed=2), numbers=True)
    toil = "reflect('org.apache.spark.barograph.source.BusyWork', 'spin', 10000) as spun"
    with running(eye, "toiling", named(load(eye, replay).repartition(1).selectExpr("k", toil), "toil")) as (query, _):
        eye.settle(query, lambda: eye.of("toiling/toil").executed > 300)
        waiting = []
        for _ in range(10):
            done = eye.of("toiling/toil").executed
            eye.settle(query, lambda done=done: eye.of("toiling/toil").executed > done + 10)  # type: ignore[misc]
            waiting.append(eye.of("toiling/toil").pending)
        # 20 rows are 0.2 s; a report of the sender may be newer than that of the receiver.
        assert 0 < max(waiting) <= 60
        assert eye.of("toiling/source").pending > 100
        eye.end_epoch(query)


def test_the_plug_in_counts_in_the_same_buckets(eye: Eye) -> None:
    jvm = eye.stage.spark._jvm
    assert jvm is not None
    for ms in (0, 1, 127, 128, 129, 255, 256, 1000, 29_999, 30_000, 123_456_789, (1 << 40) - 1, 1 << 41):
        assert jvm.org.apache.spark.barograph.telemetry.Histogram.bucket(ms) == bucket_of(ms)
