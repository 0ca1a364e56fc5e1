"""What the planner's rule makes of a query: which sinks it lets through, how many instances a union has, and when it
begins an epoch."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.engines.spark.query.naming import named
from barograph.engines.spark.session import real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.model import Load, Plan
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark
UNLISTED = "org.apache.spark.barograph.testing.UnlistedSink"
TIMED = "org.apache.spark.barograph.source.TimedSink"
ASYNC = "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled"


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    return shared_stage


@pytest.fixture
def setting(stage: LocalCluster) -> Iterator[Callable[[str, str], None]]:
    """Sets a setting of Spark for one test."""
    before: dict[str, str] = {}

    def set_it(key: str, value: str) -> None:
        before[key] = stage.spark.conf.get(key) or ""
        stage.spark.conf.set(key, value)

    yield set_it
    for key, value in before.items():
        stage.spark.conf.set(key, value)


def rows(stage: LocalCluster, seed: int = 1, rate: int = 200, partitions: int = 1) -> DataFrame:
    replay = Replay(Load.parse(f"constant {rate}").schedule(1.0), partitions, LineShape(seed=seed), numbers=True)
    return stage.spark.readStream.format(FORMAT).options(**replay.options()).load()


@contextmanager
def started(frame: DataFrame, name: str, sink: str = "noop", **options: str) -> Iterator[tuple[StreamingQuery, Path]]:
    with tempfile.TemporaryDirectory(prefix="barograph-test-", ignore_cleanup_errors=True) as folder:
        writer = frame.writeStream.queryName(name).outputMode("update").format(sink).options(**options)
        query = real_time(writer.option("checkpointLocation", folder), 300.0).start()
        try:
            yield query, Path(folder)
        finally:
            query.stop()


def settle(stage: LocalCluster, query: StreamingQuery, condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        require_alive(query)
        time.sleep(0.05)
        stage.engine.refresh()


def is_up(stage: LocalCluster, name: str) -> bool:
    epoch = stage.engine.present(name)
    return epoch is not None and epoch.is_up


def test_a_sink_that_spark_does_not_list_is_refused_in_its_words(stage: LocalCluster) -> None:
    refused = r"OPERATOR_OR_SINK_NOT_IN_ALLOWLIST\].*sink.*UnlistedTable is not in the sink allowlist"
    with started(rows(stage), "refused", UNLISTED) as (query, folder):
        with pytest.raises(StreamingQueryException, match=refused):
            query.awaitTermination(120)
        assert last_committed_epoch(folder) is None


@pytest.mark.parametrize("sink", ["memory", TIMED])
def test_named_sinks_are_exempt(stage: LocalCluster, sink: str) -> None:
    name = f"exempt_{sink.rpartition('.')[2]}"
    timed = rows(stage).selectExpr("*", "due_ms as barograph_due_ms", "due_ms as barograph_read_ms")
    with started(timed, name, sink) as (query, _):
        settle(stage, query, lambda: is_up(stage, name) and stage.engine.output_rows(name) > 0)


def test_a_union_of_inputs_that_are_distributed_alike_has_their_instances_once(stage: LocalCluster) -> None:
    """Spark reads partition i of both in task i."""
    first, second = (
        named(rows(stage, seed).selectExpr(f"{seed} as input", "k"), f"input-{seed}").repartition(2, col("k"))
        for seed in (1, 2)
    )
    joined = named(first.union(second).where("k >= 0"), "joined")
    with started(joined, "alike", "memory") as (query, _):
        settle(stage, query, lambda: is_up(stage, "alike"))
        (topology,) = (t for t in stage.engine.observe().topologies if t.name == "alike")
        assert {o.name: o.parallelism for o in topology.operators} == {"input-1": 1, "input-2": 1, "joined": 2}
        settle(stage, query, lambda: stage.engine.output_rows("alike") > 100)
        assert stage.engine.apply(Plan(cuts=("alike",))).ok
        counts = {r["input"]: r["count"] for r in stage.spark.table("alike").groupBy("input").count().collect()}
        assert set(counts) == {1, 2}


@pytest.mark.parametrize("how", ["by default", "by its author"])
def test_an_epoch_begins_when_the_one_before_is_in_the_commit_log(
    stage: LocalCluster, setting: Callable[[str, str], None], how: str
) -> None:
    """Spark's own default for stateless queries, and its option: it writes the logs while the next epoch is planned."""
    if how == "by default":
        setting(ASYNC, "true")
    options = {"asyncProgressTrackingEnabled": "true"} if how == "by its author" else {}
    name = f"logged-{how.replace(' ', '-')}"
    with started(rows(stage).repartition(1), name, **options) as (query, folder):
        settle(stage, query, lambda: is_up(stage, name))
        assert "AsyncProgressTracking" in query._jsq.streamingQuery().getClass().getName()
        for _ in range(5):
            epoch = stage.engine.present(name)
            assert epoch is not None
            assert stage.engine.apply(Plan(cuts=(name,))).ok
            committed = last_committed_epoch(folder)
            assert committed is not None
            assert committed >= epoch.epoch
            settle(stage, query, lambda: is_up(stage, name))
