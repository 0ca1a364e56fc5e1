"""The parts: due times, fair CPU, complete times, and what strict reading refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.engines.sim import find, parse_scenario, read_calibration, shipped
from barograph.engines.sim.calibration import parse_calibration
from barograph.engines.sim.grains.complete_times import CompleteTimes
from barograph.engines.sim.grains.due import DueTimes
from barograph.engines.sim.world.cpu import CpuPace, pace
from barograph.model import BadInput
from barograph.model.loads.load import Load

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
    "one that wants little gets it": ([1.0, 1.0, 1.0], [0.1, 1.0, 1.0], [0, 0, 0], [1.1], [0.5, 0.5, 0.5]),
    "shares bind first": ([0.2, 1.0], [1.0, 1.0], [0, 0], [1.0], [0.2, 0.8]),
    "nodes are apart": ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0, 0, 1], [1.0, 1.0], [0.5, 0.5, 1.0]),
    "no place, no speed": ([1.0, 1.0], [1.0, 1.0], [0, -1], [1.0], [1.0, 0.0]),
}


@pytest.mark.parametrize("case", FAIR)
def test_a_full_node_is_shared_fairly(case: str) -> None:
    limit, wanted, node, capacity, expected = FAIR[case]
    found = pace(np.array(limit), np.array(wanted), np.array(node), np.array(capacity), 0.0, 0.003)
    assert found.speed == pytest.approx(expected)


def beside(greedy: int, need: float, most: float = 1.0) -> CpuPace:
    """One instance that needs so much of a core, on a node of four cores with neighbours that use all they may."""
    limit, wanted = np.array([1.0] + [most] * greedy), np.array([need] + [1.0] * greedy)
    return pace(limit, wanted, np.zeros(greedy + 1, dtype=np.intp), np.array([4.0]), 0.0, 0.003)


def test_the_more_neighbours_want_cpu_the_less_is_left_and_the_longer_a_thread_waits() -> None:
    assert beside(3, 0.4).wait_s is None  # there is a core for each
    eight, twelve = beside(8, 0.4), beside(12, 0.4)
    assert eight.speed[0] == pytest.approx(3.6 / 8)
    assert eight.wait_s is not None
    assert eight.wait_s[0] == pytest.approx(0.003 * (8 / 3.6 - 1))
    assert twelve.speed[0] == pytest.approx(4 / 13)  # less than it needs
    assert twelve.wait_s is not None
    assert twelve.wait_s[0] > eight.wait_s[0]


def test_limits_that_add_up_to_the_node_protect_from_neighbours() -> None:
    held = beside(12, 0.4, most=0.3)
    assert held.speed[0] == 1.0
    assert held.wait_s is None


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 2), st.integers(-1, 2)), min_size=1, max_size=30),
    st.lists(st.floats(0.1, 8), min_size=3, max_size=3),
)
def test_no_node_gives_more_than_it_has_and_one_with_room_is_as_if_alone(
    instances: list[tuple[float, float, int]], cores: list[float]
) -> None:
    limit, wanted, node = (np.array(x) for x in zip(*instances, strict=True))
    capacity = np.array(cores)
    found = pace(limit, wanted, node, capacity, 0.0, 0.003)
    for n in range(3):
        here = node == n
        use = np.minimum(limit, wanted)[here]
        assert np.minimum(found.speed[here], use).sum() <= max(capacity[n], 0.0) * (1 + 1e-5)
        if use.sum() <= capacity[n]:
            assert (found.speed[here] == limit[here]).all()
            assert found.wait_s is None or not found.wait_s[here].any()


def test_complete_times_keep_counts_exact_and_percentiles_close() -> None:
    times, halves = CompleteTimes(0.5), [CompleteTimes(0.5), CompleteTimes(0.5)]
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
            assert found.quantile_s(q) == pytest.approx(np.quantile(sample, q), rel=0.01)
    assert CompleteTimes(1.0).latency() is None


def test_every_scenario_that_ships_can_be_read() -> None:
    names = list(shipped())
    assert len(names) > 60
    for name in names:
        assert find(name).name == name
    papers = {paper for n in names if (paper := find(n).paper)}  # scenarios of ours have none
    assert papers == {"Liu et al.", "Kombi et al.", "N-Storm", "Chakraborty", "Aniello et al."}


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
    'name = "x"': ('name = "x"\ncalibration = {speed = 3}', "x: calibration: unknown constant 'speed'"),
    'title = "x"\n': ('title = "x"\ncalibration = {slice_s = 0}\n', "x: calibration: slice_s must be above 0"),
    "duration_s = 10\n": (
        "duration_s = 10\ncalibration = {contention_loss = 2}\n",
        "x: calibration: contention_loss must be below 1",
    ),
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
