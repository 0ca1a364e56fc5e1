"""Degraded seconds: worked numbers after N-Storm, and what counts as running smoothly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from barograph.engines.degraded import degraded_s, smooth_seconds, steps_below

WORKED = [100, 100, 50, 30, 0, 0, 70, 100]


def test_the_worked_series() -> None:
    assert steps_below(WORKED, [100.0] * 8) == {20: 5, 40: 4, 60: 3, 80: 2, 100: 2}
    assert degraded_s(WORKED, [100.0] * 8, [(2, 7)]) == {20: 5, 40: 4, 60: 3, 80: 2, 100: 2}


def test_a_run_that_stands_still_for_most_of_its_time_is_not_perfect() -> None:
    """The median second of this run is 0, and so was the count when that was taken for stable."""
    output = ([100.0] * 24 + [0.0] * 36) * 10
    stops = [(60.0 * k + 24, 60.0 * k + 60) for k in range(10)]
    assert degraded_s(output, [100.0] * 600, stops) == dict.fromkeys((20, 40, 60, 80, 100), 360)


def test_what_is_caught_up_after_a_stop_is_not_stable_output() -> None:
    """Ten seconds of nothing, then ten at twice the load: stable stays what falls due."""
    output = [100.0] * 10 + [0.0] * 10 + [200.0] * 10 + [100.0] * 10
    smooth = smooth_seconds(output, [100.0] * 40, [(10, 20)])
    assert smooth.tolist() == [True] * 10 + [False] * 20 + [True] * 10
    assert degraded_s(output, [100.0] * 40, [(10, 20)]) == dict.fromkeys((20, 40, 60, 80, 100), 10)


def test_a_topology_that_can_do_no_more_is_not_catching_up() -> None:
    """The load is above what it can do: the backlog never falls, and the stretches between stops are as good as any."""
    output = [80.0] * 10 + [0.0] * 5 + [60.0] * 10
    smooth = smooth_seconds(output, [100.0] * 25, [(10, 15)])
    assert smooth.tolist() == [True] * 10 + [False] * 5 + [True] * 10
    found = degraded_s(output, [100.0] * 25, [(10, 15)])
    assert found == {20: 5, 40: 5, 60: 5, 80: 5, 100: 5}  # stable is 70, so 60 is 14 % below


def test_a_catch_up_that_the_next_stop_ends_is_one_all_the_same() -> None:
    output = [100.0] * 10 + [0.0] * 20 + [150.0] * 10 + [0.0] * 10 + [150.0] * 10
    smooth = smooth_seconds(output, [100.0] * 60, [(10, 30), (40, 50)])
    assert smooth.tolist() == [True] * 10 + [False] * 50


def test_a_stop_within_a_second_spoils_that_second() -> None:
    smooth = smooth_seconds([10.0] * 6, [10.0] * 6, [(2.4, 2.6)])
    assert smooth.tolist() == [True, True, False, False, True, True]  # the fourth is when it is seen to be in time


def test_a_load_that_falls_is_no_degradation() -> None:
    load = [100.0] * 20 + [20.0] * 20 + [0.0] * 5
    assert degraded_s(load, load, []) == dict.fromkeys((20, 40, 60, 80, 100), 0)


def test_without_a_smooth_second_nothing_is_known() -> None:
    assert degraded_s([5.0, 5.0], [5.0, 5.0], [(0, 2)]) is None
    assert degraded_s([], [], []) is None
    assert degraded_s([0.0] * 5, [5.0] * 5, []) is None


@given(st.lists(st.floats(0, 200), min_size=1, max_size=60), st.floats(1, 100))
def test_deeper_degradation_never_lasts_longer(output: list[float], stable: float) -> None:
    found = list(steps_below(output, [stable] * len(output)).values())
    assert found == sorted(found, reverse=True)
    assert found[-1] == int(np.count_nonzero(np.array(output) <= stable * 1e-9))
    assert found[0] <= len(output)


@given(
    st.lists(st.tuples(st.integers(0, 110), st.integers(1, 40)), max_size=4),
    st.floats(1, 1e4),
    st.floats(0.1, 1.0),
)
def test_under_a_saturating_load_the_stopped_seconds_are_counted_to_the_second(
    stops: list[tuple[int, int]], load: float, part: float
) -> None:
    """However many stops: as long as one second ran, the seconds without output are those of the stops."""
    stopped = np.zeros(120, dtype=np.bool_)
    for start, length in stops:
        stopped[start : start + length] = True
    output = np.where(stopped, 0.0, part * load)
    found = degraded_s(output.tolist(), [load] * 120, [(float(a), float(a + n)) for a, n in stops])
    if stopped.all():
        assert found is None
    else:
        assert found == dict.fromkeys((20, 40, 60, 80, 100), int(stopped.sum()))
