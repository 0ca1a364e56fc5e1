"""Spark keeps the engine's contract: one cluster and one query for all tests, put back in order before each."""

import time
from collections.abc import Callable, Iterator

import pytest
from tests.contracts.engine_contract import PARALLELISM, TOPOLOGY, EngineContract, instance

from barograph.engines.port import Engine
from barograph.engines.spark.engine import SparkEngine
from barograph.experiments.stage import Counting, open_stage
from barograph.model import MigrationMode, Placement, Plan, Rescale, Slot, Snapshot

pytestmark = pytest.mark.spark
EPOCH_S = 5.0  # short, so that mode boundary does not wait long


@pytest.fixture(scope="module")
def counting() -> Iterator[Counting]:
    with open_stage() as stage, stage.wordcount(TOPOLOGY, epoch_s=EPOCH_S) as started:
        yield started
        verdict = started.verdict()  # over everything that all tests did to it
        assert verdict.exact, verdict


class TestSparkKeepsTheContract(EngineContract):
    modes = (MigrationMode.BOUNDARY, MigrationMode.CUT, MigrationMode.WARM_CUT)

    @pytest.fixture
    def engine(self, counting: Counting) -> SparkEngine:
        engine = counting.stage.engine
        everyone = [instance(operator, i) for operator, n in PARALLELISM.items() for i in range(n)]
        home = Placement({who: Slot(f"node-{1 + n % 3}") for n, who in enumerate(everyone)})
        assert engine.apply(Plan(rescales=(Rescale(TOPOLOGY, "split", PARALLELISM["split"]),))).ok
        assert engine.apply(Plan(home)).ok
        return engine

    def settle(self, engine: Engine, condition: Callable[[Snapshot], bool]) -> Snapshot:
        deadline = time.monotonic() + 30
        while not condition(seen := engine.observe()):
            assert time.monotonic() < deadline, "the condition did not come about in 30 s"
            time.sleep(0.1)
        return seen

    def assert_exact(self, engine: Engine) -> None:
        """Counted once, at the end, over all tests: see the fixture."""
