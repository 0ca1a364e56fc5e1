"""Spark keeps the engine's contract: one cluster and one query for all tests, with the same placement before each."""

import time
from collections.abc import Callable, Iterator

import pytest
from tests.contracts.engine_contract import PARALLELISM, TOPOLOGY, EngineContract, instance

from barograph.engines.port import Engine
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.checkpoint import committed_offsets, last_committed_epoch
from barograph.experiments.verdict import judge
from barograph.model import Placement, Plan, Rescale, Slot, Snapshot
from barograph.testing.local_cluster import LocalCluster, RunningQuery
from barograph.workloads.keyed_counts import counts_in_state

pytestmark = pytest.mark.spark
EPOCH_S = 5.0  # short, so that mode boundary does not wait long


@pytest.fixture(scope="module")
def counting(shared_stage: LocalCluster) -> Iterator[RunningQuery]:
    with shared_stage.query(TOPOLOGY, epoch_s=EPOCH_S) as started:
        yield started
        verdict = started.verdict()  # with all that followed the last test that judged
        assert verdict.exact, verdict


class TestSparkKeepsTheContract(EngineContract):
    counting: RunningQuery

    @pytest.fixture
    def engine(self, counting: RunningQuery) -> SparkEngine:
        self.counting = counting
        engine = counting.cluster.engine
        instances = [instance(operator, i) for operator, n in PARALLELISM.items() for i in range(n)]
        home = Placement({i: Slot(f"node-{1 + n % 3}") for n, i in enumerate(instances)})
        assert engine.apply(Plan(rescales=(Rescale(TOPOLOGY, "split", PARALLELISM["split"]),))).ok
        assert engine.apply(Plan(home)).ok
        return engine

    def settle(self, engine: Engine, condition: Callable[[Snapshot], bool]) -> Snapshot:
        deadline = time.monotonic() + 30
        while not condition(seen := engine.observe()):
            assert time.monotonic() < deadline, "the condition did not become true in 30 s"
            time.sleep(0.1)
        return seen

    def assert_exact(self, engine: Engine) -> None:
        """Judge the last committed epoch while the query goes on, so that a failure names the test that caused it."""
        ended = engine.apply(Plan(cuts=(TOPOLOGY,)))
        assert ended.ok, ended.refused
        query = self.counting
        epoch = last_committed_epoch(query.checkpoint)
        assert epoch is not None
        spark, started = query.cluster.spark, query.started
        due = started.workload.due(spark, query.inputs, committed_offsets(query.checkpoint, epoch))
        assert due.rows > 0
        verdict = judge(due, counts_in_state(spark, str(query.checkpoint), "key.word", epoch))
        assert verdict.exact, verdict
