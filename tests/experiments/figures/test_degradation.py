"""A run's output by centisecond, its orders and its restarts, as degraded seconds."""

import pytest

from barograph.experiments.figures.degradation import degradation, stops_of
from barograph.experiments.figures.pauses import pauses
from barograph.experiments.figures.repeats import RestartReport
from barograph.model import Load

START_MS = 1_700_000_000_120  # not on a second


def output(rates: list[tuple[float, float, int]]) -> dict[int, int]:
    """(from, to, rows every 10 ms) in seconds of the load."""
    return {
        (START_MS + round(k * 10)) // 10: rows for a, b, rows in rates for k in range(round(a * 100), round(b * 100))
    }


def test_a_run_that_stands_still_for_most_of_its_time() -> None:
    """Four of five stops are restarts of 8 s; a load that cannot be made up for, as with a client that waits."""
    schedule = Load.parse("constant 200").schedule(50.0)
    out = output([(10.0 * k, 10.0 * k + 2, 10) for k in range(5)])
    stops = stops_of(pauses(out, schedule, START_MS, 50.0, 5))
    assert degradation(out, schedule, START_MS, 50.0, 5, stops) == dict.fromkeys((20, 40, 60, 80, 100), 40)


def test_a_stop_that_is_caught_up_counts_for_as_long_as_it_lasted() -> None:
    schedule = Load.parse("constant 200").schedule(30.0)
    out = output([(0, 10, 10), (12, 14, 20), (14, 30, 10)])
    stops = stops_of(pauses(out, schedule, START_MS, 30.0, 5))
    assert stops == [pytest.approx((9.995, 12.0))]
    assert degradation(out, schedule, START_MS, 30.0, 5, stops) == dict.fromkeys((20, 40, 60, 80, 100), 2)


def test_a_load_that_falls_is_not_degraded() -> None:
    schedule = Load.parse("steps 0s=200 10s=40").schedule(20.0)
    out = output([(0, 10, 10), (10, 20, 2)])
    assert degradation(out, schedule, START_MS, 20.0, 5, []) == dict.fromkeys((20, 40, 60, 80, 100), 0)


def test_what_counts_as_disturbed() -> None:
    restart = RestartReport(20.0, "a worker died", 3.0, 0, 0)
    decisions: list[dict[str, object]] = [{"at_s": 31.5, "pause_s": 1.5}, {"at_s": 40.0, "pause_s": None}]
    assert stops_of([], [(5.0, 6.0)], [restart], decisions) == [(5.0, 6.0), (20.0, 23.0), (30.0, 31.5)]
