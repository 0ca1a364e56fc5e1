"""How large a scenario may be: what is too large is refused before it is computed, and what ships is not."""

from dataclasses import replace

import numpy as np
import pytest

from barograph.engines.sim import Scenario, Simulator, find, parse_scenario, shipped
from barograph.engines.sim.grains import row_queue
from barograph.engines.sim.scenario.bounds import fitting, require_bounds, require_rows, rows_of
from barograph.model import BadInput
from barograph.model.loads import load

SCENARIO = """
name = "small"
title = "a small run"
duration_s = 40
nodes = [{name = "n", count = 2, cpu_pct = 200, slots = 2, memory_mb = 8192}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 2, load = "constant 300", cost_ms = 0.5},
  {name = "k", parallelism = 3, cost_ms = 3},
]
edges = [{source = "s", target = "k", selectivity = 1.5, grouping = "all"}]
"""


def scenario(*changes: tuple[str, str]) -> Scenario:
    text = SCENARIO
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return parse_scenario(text, "small.toml")


# what is replaced, by what, and the sentence
TOO_LARGE = {
    "a billion nodes": ("count = 2", "count = 1000000000", "count must be at most 10,000, not 1,000,000,000"),
    "nodes in two lines": (
        "memory_mb = 8192}",
        'memory_mb = 8192}, {name = "m", count = 10000, cpu_pct = 1}',
        "the number of nodes must be at most 10,000, not 10,002",
    ),
    "slots": ("slots = 2", "slots = 1000000000", "the number of slots must be at most 50,000, not 2,000,000,000"),
    "seats": ("slots = 2", "seats = 1000000000", "node n-1: seats must be at most 10,000, not 1,000,000,000"),
    "cores": ("cpu_pct = 200", "cpu_pct = 1e300", "node n-1: cpu_pct must be from 0.1 to 1e+06, not 1e+300"),
    "clock": ("slots = 2", "clock_mhz = 1e-300", "node n-1: clock_mhz must be from 1 to 1e+06, not 1e-300"),
    "instances": (
        "parallelism = 2",
        "parallelism = 100000000",
        "the number of instances must be at most 100,000, not 100,000,003",
    ),
    "instances it may grow to": (
        "parallelism = 3",
        "parallelism = 3, max_parallelism = 100000000",
        "the number of instances must be at most 100,000, not 100,000,002",
    ),
    "more instances than seats": (
        "parallelism = 3",
        "parallelism = 1000",
        "topology t has 1,002 instances, and all nodes together have 64 seats",
    ),
    "nodes of its own": (
        'name = "t"',
        'name = "t"\nisolate_nodes = 1000000000',
        "topology t: isolate_nodes must be at most 10,000, not 1,000,000,000",
    ),
    "duration": ("duration_s = 40", "duration_s = 1e15", "step_s of 0.25 fits 4e+15 times into duration_s; a run"),
    "no duration": ("duration_s = 40", "duration_s = 1e-300", "duration_s must be at least 1e-06, not 1e-300"),
    "steps": ("duration_s = 40", "duration_s = 40\nstep_s = 1e-6", "step_s of 1e-06 fits 4e+07 times"),
    "no step": ("duration_s = 40", "duration_s = 40\nstep_s = 1e-300", "step_s must be at least 1e-06, not 1e-300"),
    "cycles": ("duration_s = 40", "duration_s = 40\ncycle_s = 1e-5", "cycle_s of 1e-05 fits 4e+06 times"),
    "epochs": ("duration_s = 40", "duration_s = 40\nepoch_s = 1e-5", "epoch_s of 1e-05 fits 4e+06 times"),
    "reassignments": (
        "duration_s = 40",
        "duration_s = 40\nreassign = {every_s = 1e-5, instances = 1}",
        "reassign.every_s of 1e-05 fits 4e+06 times",
    ),
    "batches": (
        '"constant 300"',
        '"batches rows=1 every=0.1ms count=999999999 within=0.1ms"',
        "has more than 100000 pieces in 40 s",
    ),
    "keys": ("selectivity = 1.5", "keys = 1000000000", "edges[0]: keys must be at most 1,000,000, not 1,000,000,000"),
    "cost": ("cost_ms = 3", "cost_ms = 1e300", "operators[1]: cost_ms must be from 1e-06 to 3.6e+06, not 1e+300"),
    "rate": ('"constant 300"', '"constant 1e300"', "'1e300' is not a rate; write rows a second as a number from 0 to"),
    "stages": (
        SCENARIO[SCENARIO.index("operators") :],
        "chain = {stages = 1000000000, source = 1, simple = 1, stateful = 1, rate = 10, cost_ms = 1}",
        "chain: stages must be at most 1,000, not 1,000,000,000",
    ),
    "a time before the start": (
        "[[topologies]]",
        'losses = [{at_s = 1, node = "n-1", back_s = -5}]\n[[topologies]]',
        "losses[0]: back_s must be a number of at least 0, not -5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOO_LARGE)
def test_what_is_too_large_is_refused(case: str) -> None:
    old, new, sentence = TOO_LARGE[case]
    with pytest.raises(BadInput) as refused:
        Simulator(scenario((old, new)))
    assert sentence in str(refused.value)
    assert "small" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_rows_of_a_run() -> None:
    (workload,) = scenario().workloads
    assert rows_of(workload, 40.0) == pytest.approx(40 * 300 * (1 + 1.5 * 3))


def test_too_many_rows_for_rows_are_not_too_many_for_flows() -> None:
    much = scenario(("constant 300", "constant 1e9"))
    with pytest.raises(BadInput, match=r"small: the run has 2\.2e\+11 rows; grain rows takes at most 200,000,000, and"):
        Simulator(much)
    require_rows(much, "flows", "small")
    with pytest.raises(BadInput, match=r"the run has .* rows; grain flows takes at most 1e\+15"):
        Simulator(scenario(("selectivity = 1.5", "selectivity = 1e300")), grain="flows")


def test_too_many_pairs_for_rows_are_not_too_many_for_flows() -> None:
    crowd = scenario(
        ("slots = 2", "seats = 5000"),
        ("parallelism = 2", "parallelism = 4000"),
        ("parallelism = 3", "parallelism = 4000"),
        ('grouping = "all"', 'grouping = "shuffle"'),
    )
    with pytest.raises(BadInput, match="edges join 16,000,000 pairs of instances; grain rows takes at most 10,000,000"):
        Simulator(crowd)
    require_rows(crowd, "flows", "small")


def test_a_load_of_too_many_pieces_names_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "MAX_SEGMENTS", 10)
    with pytest.raises(BadInput, match=r"small: the load 'random .*' has more than 10 pieces in 40 s"):
        Simulator(scenario(("constant 300", "random 1..25 x1 every 1s seed=1")))


@pytest.mark.parametrize("name", shipped())
def test_what_ships_is_within(name: str) -> None:
    found = find(name)
    require_bounds(found, name)
    require_rows(found, found.grain, name)


def test_a_recorded_cluster_is_within_for_flows_only() -> None:
    found = find("recording:largeCluster01")
    require_bounds(found, found.name)
    require_rows(found, "flows", found.name)
    with pytest.raises(BadInput, match="grain flows takes more"):
        require_rows(found, "rows", found.name)


def test_a_history_of_any_length_fits() -> None:
    short = scenario()
    assert fitting(short) == short
    much = fitting(scenario(("constant 300", "constant 1e9")))
    assert much.grain == "flows"
    long = fitting(replace(short, duration_s=1e8, cycle_s=1e3, epoch_s=1e3))
    assert long.grain == "flows"
    for found in (much, long):
        require_bounds(found, "small")
        require_rows(found, found.grain, "small")


@pytest.mark.parametrize("most", [1, 10, 997])
def test_a_huge_backlog_is_told_in_groups(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Simulator(scenario(("constant 300", "ramp 0s=100 40s=30000"), ("cost_ms = 3", "cost_ms = 100")))
    engine.advance(20.0)
    ages_s, weights = engine.grain.unfinished(0, 20.0)
    monkeypatch.setattr(row_queue, "_MOST_UNREAD", most)
    grouped_s, by_group = engine.grain.unfinished(0, 20.0)
    assert ages_s.size > 100_000
    assert grouped_s.size < 2000  # also rows in flight, which are never grouped
    assert by_group.sum() == pytest.approx(weights.sum(), rel=1e-12)
    mean_s = np.average(ages_s, weights=weights)
    assert np.average(grouped_s, weights=by_group) == pytest.approx(mean_s, rel=0.15 if most == 1 else 0.02)
