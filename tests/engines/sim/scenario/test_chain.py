"""The reference chain in one line, and what Aniello's scenarios are made of."""

import numpy as np
import pytest

from barograph.engines.sim import Scenario, find, parse_scenario
from barograph.engines.sim.world.layout import WorldLayout
from barograph.model import Grouping, Placement

CHAIN = """
name = "c"
title = "a chain"
duration_s = 10
nodes = [{name = "n", count = 2, cpu_pct = 100}]
[[topologies]]
name = "t"
chain = {stages = STAGES, source = 4, simple = 3, stateful = 2, rate = 100, cost_ms = 0.2}
"""


def chain(stages: int) -> Scenario:
    return parse_scenario(CHAIN.replace("STAGES", str(stages)), "c")


def test_stages_count_the_operators_behind_the_source() -> None:
    topology = chain(7).workloads[0].topology
    names = [o.name for o in topology.operators]
    assert names == [
        "source", "simple-1", "stateful-2", "simple-3", "stateful-4", "simple-5", "stateful-6", "ack",
    ]  # fmt: skip
    assert [o.parallelism for o in topology.operators] == [4, 3, 2, 3, 2, 3, 2, 3]
    assert [e.grouping is Grouping.FIELDS for e in topology.edges] == [False, True] * 3 + [False]


def test_source_instances_differ_by_the_variance() -> None:
    work = chain(3).workloads[0].work["source"]
    assert [400 * f for f in work.fractions(4)] == pytest.approx([80, 93.333, 106.667, 120], abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_half_of_what_goes_to_a_stateful_operator_has_the_senders_constant_key(seed: int) -> None:
    scenario = chain(3)
    topologies = [w.topology for w in scenario.workloads]
    layout = WorldLayout(scenario.workloads, topologies, Placement(), scenario.nodes, seed)
    shuffled, keyed, _ = layout.edges
    assert (shuffled.sticky, keyed.sticky) == (0.0, 0.5)
    assert keyed.home.shape == (3,)
    assert set(keyed.home.tolist()) <= {0, 1}


def test_constant_keys_are_hashed_so_seeds_differ() -> None:
    scenario = chain(3)
    topologies = [w.topology for w in scenario.workloads]
    homes = [
        WorldLayout(scenario.workloads, topologies, Placement(), scenario.nodes, s).edges[1].home for s in range(20)
    ]
    assert len({tuple(h.tolist()) for h in homes}) > 3
    assert np.mean(homes) == pytest.approx(0.5, abs=0.2)


INSTANCES = {
    "chain-over-time": 22,
    "chain-stages/s3-r2": 8,
    "chain-stages/s7-r4": 32,
    "chain-alpha": 30,
    "debs-2013": 14,
}


@pytest.mark.parametrize("name", INSTANCES)
def test_the_scenarios_have_the_papers_cluster_and_size(name: str) -> None:
    scenario = find(name)
    assert [(n.slots, n.cpu_pct, n.memory_mb) for n in scenario.nodes] == [(5, 200, 3072)] * 8
    assert sum(o.parallelism for o in scenario.workloads[0].topology.operators) == INSTANCES[name]
