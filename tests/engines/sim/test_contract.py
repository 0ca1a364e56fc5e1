"""The simulator keeps the engine's contract, in both grains."""

from collections.abc import Callable

import pytest
from tests.contracts.engine_contract import EngineContract

from barograph.engines.port import Engine
from barograph.engines.sim import Simulator, parse_scenario
from barograph.model import Snapshot

WORDCOUNT = """
name = "contract"
title = "what the contract asks for"
duration_s = 3600
epoch_s = 5
cycle_s = 1
[[nodes]]
name = "node"
count = 3
cpu_pct = 200
seats = 8
[[topologies]]
name = "wordcount"
operators = [
  {name = "source", parallelism = 2, load = "constant 200", cost_ms = 0.2},
  {name = "split", parallelism = 2, cost_ms = 0.5, spread = 0.3},
  {name = "count", parallelism = 3, cost_ms = 0.3, spread = 0.3, stateful = true, state_mb = 10},
]
edges = [
  {source = "source", target = "split"},
  {source = "split", target = "count", grouping = "fields", selectivity = 2.5, skew = 0.5},
]
"""


class SimulatorContract(EngineContract):
    grain: str

    @pytest.fixture
    def engine(self) -> Simulator:
        found = Simulator(parse_scenario(WORDCOUNT, "contract"), seed=3, grain=self.grain)
        found.start()
        return found

    def settle(self, engine: Engine, condition: Callable[[Snapshot], bool]) -> Snapshot:
        assert isinstance(engine, Simulator)
        for _ in range(100):
            engine.advance(0.25)
            seen = engine.observe()
            if condition(seen):
                return seen
        pytest.fail("the condition was not met in 25 simulated seconds")

    def assert_exact(self, engine: Engine) -> None:
        assert isinstance(engine, Simulator)
        assert engine.grain.unaccounted(engine.now_s) == 0


class TestRowsKeepTheContract(SimulatorContract):
    grain = "rows"


class TestFlowsKeepTheContract(SimulatorContract):
    grain = "flows"
