"""The parts: due times, fair CPU, complete times, and what strict reading refuses."""

import numpy as np
import pytest

from barograph.engines.sim import find, parse_scenario, read_calibration, shipped
from barograph.engines.sim.calibration import parse_calibration
from barograph.engines.sim.cpu import speeds
from barograph.engines.sim.due import DueTimes
from barograph.engines.sim.latency import Times
from barograph.model import BadInput
from barograph.model.load import Load

LOADS = ["constant 7", "ramp 0s=2 10s=12 30s=0", "steps 0s=0 3s=5 9s=20", "onoff high=8 low=0 share=0.5 period=4s"]


@pytest.mark.parametrize("text", LOADS)
def test_rows_fall_due_when_the_schedule_says(text: str) -> None:
    load = Load.parse(text)
    schedule, due = load.schedule(40.0), DueTimes(load, [1 / 3] * 3, 40.0)
    for partition in range(3):
        rows = int(due.rows_due(40.0)[partition])
        assert rows > 5
        k = np.arange(rows)
        found = due.due_s(np.full(rows, partition), k.astype(float))
        assert found == pytest.approx([schedule.due_s(int(i) * 3 + partition) for i in k])
        assert found.max() <= 40.0


FAIR = {
    "room for all": ([1.0, 1.0], [0.3, 0.4], [0, 0], [1.0], [1.0, 1.0]),
    "equal parts": ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0, 0, 0], [1.5], [0.5, 0.5, 0.5]),
    "who wants little gets it": ([1.0, 1.0, 1.0], [0.1, 1.0, 1.0], [0, 0, 0], [1.1], [0.5, 0.5, 0.5]),
    "shares bind first": ([0.2, 1.0], [1.0, 1.0], [0, 0], [1.0], [0.2, 0.8]),
    "nodes are apart": ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0, 0, 1], [1.0, 1.0], [0.5, 0.5, 1.0]),
    "no place, no speed": ([1.0, 1.0], [1.0, 1.0], [0, -1], [1.0], [1.0, 0.0]),
}


@pytest.mark.parametrize("case", FAIR)
def test_a_full_node_is_shared_fairly(case: str) -> None:
    limit, wanted, node, capacity, expected = FAIR[case]
    found = speeds(np.array(limit), np.array(wanted), np.array(node), np.array(capacity), 0.0)
    assert found == pytest.approx(expected)


def test_complete_times_keep_counts_exact_and_percentiles_close() -> None:
    times, halves = Times(0.5), [Times(0.5), Times(0.5)]
    sample = np.random.default_rng(1).exponential(0.1, 20_000)
    times.add(sample)
    halves[0].add(sample[:7000])
    halves[1].add(sample[7000:], np.ones(13_000))
    halves[0].merge(halves[1])
    for found in (times, halves[0]):
        assert found.count == 20_000
        assert found.late == np.count_nonzero(sample > 0.5)
        assert found.mean_s == pytest.approx(sample.mean())
        for q in (0.5, 0.99):
            assert found.quantile_s(q) == pytest.approx(np.quantile(sample, q), rel=0.02)
    assert Times(1.0).latency() is None


def test_every_scenario_that_ships_can_be_read() -> None:
    names = list(shipped())
    assert len(names) > 60
    for name in names:
        assert find(name).name == name
    pages = {page for n in names if (page := find(n).page)}  # scenarios of ours have none
    assert pages == {"adaptive.md", "autoscale.md", "migration.md", "priority.md", "traffic.md"}


GOOD = """
name = "x"
title = "x"
duration_s = 10
nodes = [{name = "n", count = 2, cpu_pct = 100}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 1, load = "constant 5", cost_ms = 1},
  {name = "k", parallelism = 1, cost_ms = 1},
]
edges = [{source = "s", target = "k"}]
"""
WRONG = {
    "duration_s = 10": ("duration_s = 0", "x: duration_s must be above 0"),
    'title = "x"': ('title = "x"\nspeed = 3', "x: unknown field 'speed'"),
    "cpu_pct = 100": ('cpu_pct = "much"', "x: nodes[0]: cpu_pct must be a float, not 'much'"),
    "count = 2": ("count = 0", "x: nodes[0]: count must be a whole number of at least 1, not 0"),
    '"constant 5"': (
        '"constant -5"',
        "x: topologies[0]: operators[0]: load 'constant -5', column 10: '-5' is not a rate",
    ),
    'target = "k"': ('target = "z"', "x: topologies[0]: topology t: edge s->z names the unknown operator 'z'"),
    'edges = [{source = "s", target = "k"}]': ("", "x: topologies[0]: operator k has neither a load nor an edge"),
    '{name = "k", parallelism = 1,': ('{name = "k", parallelism = 1, spread = 0.9,', "spread must be at most 0.57"),
    '{name = "s", parallelism = 1,': ('{name = "s",', "x: topologies[0]: operators[0]: parallelism is missing"),
    'name = "t"': ('name = "t"\nlevel = 0', "topology t: level must be a whole number of at least 1, not 0"),
}


def test_the_good_scenario_is_good() -> None:
    assert parse_scenario(GOOD, "x").duration_s == 10


@pytest.mark.parametrize("part", WRONG)
def test_a_wrong_scenario_is_refused_by_field(part: str) -> None:
    other, sentence = WRONG[part]
    assert part in GOOD
    with pytest.raises(BadInput) as error:
        parse_scenario(GOOD.replace(part, other, 1), "x")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_calibration_is_strict() -> None:
    from importlib import resources

    text = resources.files("barograph.engines.sim").joinpath("calibration.toml").read_text()
    assert parse_calibration(text, "c").hops == read_calibration().hops
    for part, other, sentence in (
        ("boundary_s = 0.45", "boundary_s = -1", "c: epoch.boundary_s must be a number of at least 0, not -1"),
        ("boundary_s = 0.45", "", "c: epoch.boundary_s is missing"),
        ("boundary_s = 0.45", "boundary_s = 0.45\nboundry_s = 1", "c: unknown key 'epoch.boundry_s'"),
        ("calibrated = false", "calibrated = 1", "c: calibrated must be true or false"),
    ):
        with pytest.raises(BadInput) as error:
            parse_calibration(text.replace(part, other, 1), "c")
        assert str(error.value) == sentence
