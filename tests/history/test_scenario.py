"""A scenario from a history: the cost of a row must not depend on the clock speed at which it was measured."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cycles import chain, nodes, seen

from barograph.control.decide import decide
from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Scenario, Simulator, run
from barograph.history.scenario import scenario_of
from barograph.model import Cycle, InstanceMetrics, Operator, Placement, Slot
from barograph.policy.registry import named

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))
ROWS, COST_S = 1000.0, 2e-3


def recorded(clocks_mhz: Sequence[float]) -> list[Cycle]:
    """Four cycles of 100 rows/s. Each instance of ``a`` has a node of its own; what a row costs follows its clock."""
    cluster = tuple(replace(n, clock_mhz=mhz) for n, mhz in zip(nodes(2, 200), clocks_mhz, strict=True))
    homes = {i: Slot(f"n{1 + (i.operator == 'a' and i.index)}", 0) for i in TOPOLOGY.instances()}
    mean_mhz = sum(clocks_mhz) / 2
    halves = [
        InstanceMetrics(ROWS / 2, ROWS / 2, ROWS / 2, cpu_s=ROWS / 2 * COST_S * mean_mhz / mhz) for mhz in clocks_mhz
    ]
    source = InstanceMetrics(ROWS, ROWS, ROWS, cpu_s=0.1)
    found = []
    for k in range(4):
        now = seen(TOPOLOGY, {"s": source, "a": halves}, cluster=cluster, placement=Placement(homes))
        found.append(decide(named("even"), [], replace(now, at_s=10.0 * (k + 1), cycle_s=10.0)))
    return found


def cost_s(scenario: Scenario) -> float:
    (workload,) = scenario.workloads
    return workload.work["a"].cost_s


@given(st.floats(500, 6000))
def test_equal_clocks_change_nothing(mhz: float) -> None:
    scenario = scenario_of(recorded((mhz, mhz)), "recorded")
    assert cost_s(scenario) == pytest.approx(COST_S)
    assert [n.clock_mhz for n in scenario.nodes] == pytest.approx([1000, 1000])


def test_different_clocks_stay_as_different() -> None:
    scenario = scenario_of(recorded((1600, 3200)), "recorded")
    assert cost_s(scenario) == pytest.approx(COST_S)
    slow, fast = (n.clock_mhz for n in scenario.nodes)
    assert fast == pytest.approx(2 * slow)


def test_a_replay_of_a_fast_machine_uses_as_much_cpu_as_was_recorded() -> None:
    used_s = []
    for mhz in (1000.0, 2400.0):
        scenario = scenario_of(recorded((mhz, mhz)), "recorded")
        used_s.append(run(Simulator(scenario), PolicyDecider(named("even"))).cpu_used_s)
    assert used_s[0] == pytest.approx(used_s[1])
    assert used_s[0] >= 0.9 * 4 * ROWS * COST_S
