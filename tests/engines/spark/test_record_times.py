"""Latency by record times on a real cluster, against the latency of every row by its own time in the same run."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from barograph.engines.latency import Histogram
from barograph.engines.spark.query.spark_status import committed
from barograph.engines.spark.session import real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.model import LatencyKind, Load, Plan, TopologyMetrics
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.lines import LineShape
from barograph.workloads.parts import DUE_AND_READ_SQL, LAST_TIMES_SQL, TIMES_SQL
from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.truth import WORDS_SQL

pytestmark = pytest.mark.spark
TIMED_SINK = "org.apache.spark.barograph.source.TimedSink"
LINES = LineShape(seed=9, words_per_line=4, vocabulary=50)
RATE, OVERDUE_S, LOAD_S = 400, 4.0, 10.0
OVERDUE_ROWS = RATE * (OVERDUE_S - 1.5)  # at the start due for more than a second, with half a second to spare
BUFFER_MS = 50.0  # the longest that a half-filled buffer waits: Credit.PressedMs
# Rows that are overdue fill a buffer whatever their times. One of 32 kB holds fewer than 700 of these rows, and there
# are 100 a second for each pair of instances: 7 s, in at most 32 runs of at most 256 ms. On the mean a row is half a
# run off.
BURST_MS = 128.0


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    shared_stage.spark.conf.set("spark.sql.shuffle.partitions", "2")
    return shared_stage


@dataclass(frozen=True)
class Timed:
    """The same rows three times: by their own times in the sink, by their own times in the plug-in, by record times."""

    truth: Histogram
    due: Histogram
    record: Histogram
    told: TopologyMetrics


def source(stage: LocalCluster) -> tuple[DataFrame, int]:
    """Rows of which the first have been due for some seconds; and how many there are."""
    start_ms = int((time.time() - OVERDUE_S) * 1000)
    load = Load.parse(f"constant {RATE}").schedule(1.0)
    replay = Replay(load, 2, LINES, close_s=LOAD_S, start_ms=start_ms, read_time=True)
    frame = stage.spark.readStream.format(FORMAT).options(**replay.options()).load().selectExpr("*", TIMES_SQL)
    return frame, sum(replay.rows())


def timed(stage: LocalCluster, name: str, frame: DataFrame, rows: int, out: int, sink: str = TIMED_SINK) -> Timed:
    """Runs the query until its sources are read to the end. rows: of the sources; out: of the sink."""
    engine, deadline = stage.engine, time.monotonic() + 120

    def settle(condition: Callable[[], bool]) -> None:
        while not condition():
            assert time.monotonic() < deadline, "the condition did not become true in time"
            require_alive(query)
            time.sleep(0.1)
            engine.refresh()

    def rows_read() -> int:
        epoch = engine.present(name)
        return 0 if epoch is None else sum(life.rows_read for life in epoch.lives.values())

    engine.observe()
    with tempfile.TemporaryDirectory(prefix="barograph-test-", ignore_cleanup_errors=True) as folder:
        writer = frame.writeStream.queryName(name).outputMode("update").format(sink).option("name", name)
        query = real_time(writer.option("checkpointLocation", folder), 300.0).start()
        try:
            settle(lambda: rows_read() >= rows)
            assert engine.apply(Plan(cuts=(name,))).ok
            settle(lambda: engine.latency(name, "record").count >= out)
            (told,) = [t for t in engine.observe().topology_metrics if t.topology == name]
            if sink == TIMED_SINK:
                settle(lambda: committed(stage.spark, name).latency["due"].count >= out)
        finally:
            query.stop()
    due, record = (engine.latency(name, clock) for clock in ("due", "record"))
    found = Timed(committed(stage.spark, name).latency["due"], due, record, told)
    assert found.record.count == out
    return found


def is_bounded(found: Timed, hops: int) -> None:
    """No row counts as younger than it is, and on the mean it counts as older by what buffers hold at most."""
    assert found.due.count == found.record.count == found.truth.count
    for ms in range(0, 20_000, 10):
        assert found.record.above(ms) >= found.due.above(ms)
    truth, due, record = (h.sum_ms / h.count for h in (found.truth, found.due, found.record))
    assert truth == pytest.approx(due, rel=0.02, abs=5.0), "the sink reads its own clock a moment later"
    assert 0 <= record - due <= hops * (BUFFER_MS + BURST_MS)
    # However fast they are read, these rows have been due for longer; the time since they were read would be near 0.
    assert found.due.above(1000) >= OVERDUE_ROWS


def test_without_a_shuffle_it_is_exact(stage: LocalCluster) -> None:
    lines, rows = source(stage)
    found = timed(stage, "record-0", lines.selectExpr("k", *DUE_AND_READ_SQL), rows, rows)
    assert found.due == found.record
    is_bounded(found, 0)


def test_a_word_count_over_two_hops_is_bounded(stage: LocalCluster) -> None:
    lines, rows = source(stage)
    words = lines.repartition(2).selectExpr(*WORDS_SQL, "times")
    counts = words.groupBy("word").agg(expr("count(1) as n"), expr(LAST_TIMES_SQL))
    found = timed(stage, "record-2", counts.selectExpr("word", "n", *DUE_AND_READ_SQL), rows, 4 * rows)
    is_bounded(found, 2)
    assert found.told.latency_kind == LatencyKind.COLUMN
    assert found.told.latency_record is not None


def test_a_union_is_bounded(stage: LocalCluster) -> None:
    (one, n), (two, m) = source(stage), source(stage)
    both = one.union(two).repartition(2).selectExpr("k", *DUE_AND_READ_SQL)
    is_bounded(timed(stage, "record-union", both, n + m, n + m), 1)


def test_a_windowed_count_has_a_latency_although_it_drops_every_time(stage: LocalCluster) -> None:
    lines, rows = source(stage)
    words = lines.selectExpr(*WORDS_SQL, "timestamp_millis(due_ms) as at").withWatermark("at", "1 second")
    counts = words.groupBy(expr("window(at, '2 seconds')"), "word").count()
    found = timed(stage, "record-window", counts, rows, 4 * rows, "noop")
    assert (found.due.count, found.told.latency_due) == (0, None)
    assert found.told.latency_kind == LatencyKind.RECORD
    assert found.told.latency is not None
    assert found.record.above(1000) >= OVERDUE_ROWS
