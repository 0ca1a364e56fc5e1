"""Worked numbers of Liu et al.'s prediction and of AUTOSCALE's estimate (Kombi et al.)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from barograph.forecast import Forecaster, Holt, LastValue, NextWindow, Parents, Trend, TrendOrParents
from barograph.model import Edge, EdgeTraffic, InstanceMetrics, Metrics, Operator, OperatorForecast, Snapshot, Topology
from tests.cycles import chain, remembered, seen, word_count_cycles, work


def forecast_by(
    forecaster: Forecaster, snapshots: list[Snapshot], operator: str, horizon_cycles: int = 1
) -> OperatorForecast:
    *earlier, now = snapshots
    found = forecaster([remembered(s) for s in earlier], now, horizon_cycles).of(now.topologies[0].name, operator)
    assert found is not None
    return found


# operator: own trend, from its parents, delta, psi
LIU = {
    "spout": (1500, None, 0, 1500),
    "split": (1500, 1500, -40, 1460),
    "count": (6775, 7300, 0, 7300),
}


@pytest.mark.parametrize("operator", LIU)
def test_trend_or_parents_worked(operator: str) -> None:
    own, parents, delta, psi = LIU[operator]
    found = forecast_by(TrendOrParents(), word_count_cycles(), operator)
    assert found.reason is not None
    assert found.reason.numbers["own"] == pytest.approx(own)
    assert found.reason.numbers.get("parents") == (None if parents is None else pytest.approx(parents))
    assert found.reason.numbers["delta_rows"] == pytest.approx(delta)
    assert found.executed == pytest.approx(psi)
    assert found.arrived == pytest.approx(max(own, parents or 0))


@pytest.mark.parametrize(("operator", "expected"), [("spout", 1500), ("split", 1500), ("count", 6775)])
def test_trend_worked(operator: str, expected: float) -> None:
    assert forecast_by(Trend(), word_count_cycles(), operator).arrived == pytest.approx(expected)


def test_parents_worked() -> None:
    assert forecast_by(Parents(), word_count_cycles(), "count").arrived == pytest.approx(7300)


def line(arrivals: list[float], pending: float = 0.0) -> list[Snapshot]:
    topology = chain(Operator("s", 1, source=True))
    return [seen(topology, {"s": work(a, pending=pending)}, at_s=10.0 * k) for k, a in enumerate(arrivals)]


TREND = {
    "one cycle is repeated": ([700.0], 1, 700),
    "two make a line": ([700.0, 800.0], 1, 900),
    "fewer than phi: those there are": ([100.0, 200.0, 300.0], 1, 400),
    "only the last phi count": ([9e6, 100.0, 200.0, 300.0, 400.0, 500.0], 1, 600),
    "three cycles ahead": ([100.0, 200.0, 300.0, 400.0, 500.0], 3, 800),
    "never below 0": ([400.0, 300.0, 200.0, 100.0, 0.0], 2, 0),
}


@pytest.mark.parametrize("case", TREND)
def test_trend(case: str) -> None:
    arrivals, horizon, expected = TREND[case]
    assert forecast_by(Trend(), line(arrivals), "s", horizon).arrived == pytest.approx(expected)


AUTOSCALE = {
    # samples, pending: Estim received, EstimInput
    "rising": ([100.0, 110.0, 120.0, 130.0, 140.0, 150.0], 90.0, 810, 900),
    "falling": ([60.0, 50.0, 40.0, 30.0, 20.0, 10.0], 0.0, 150, 150),
    "falling to nothing": ([100.0, 80.0, 60.0, 40.0, 20.0, 0.0], 0.0, 200, 200),
}


@pytest.mark.parametrize("case", AUTOSCALE)
def test_next_window_worked(case: str) -> None:
    samples, pending, received, estimated_input = AUTOSCALE[case]
    found = forecast_by(NextWindow(), line(samples, pending), "s")
    assert found.arrived * 6 == pytest.approx(received)
    assert found.executed * 6 == pytest.approx(estimated_input)
    assert found.rising == (case == "rising")


def test_autoscale_shifts_by_one_sample_however_long_changes_take() -> None:
    rising = line([100.0, 110.0, 120.0, 130.0, 140.0, 150.0])
    far, one = (forecast_by(f, rising, "s", horizon_cycles=6) for f in (NextWindow(), NextWindow(samples_ahead=1)))
    assert far.arrived * 6 == pytest.approx(1110)
    assert one.arrived * 6 == pytest.approx(810)


def uneven(rate_at: Callable[[float], float], lengths_s: list[float]) -> list[Snapshot]:
    """Cycles of these lengths, each with rows from a rate whose mean over a cycle equals the rate at its middle."""
    topology, found, at_s = chain(Operator("s", 1, source=True)), list[Snapshot](), 0.0
    for length_s in lengths_s:
        at_s += length_s
        rows = rate_at(at_s - length_s / 2) * length_s
        found.append(seen(topology, {"s": work(rows)}, cycle_s=length_s, at_s=at_s))
    return found


ONE_LONG = [2.0] * 24 + [12.0] + [2.0] * 12


def test_one_long_cycle_does_not_bend_the_line() -> None:
    flat = forecast_by(NextWindow(), uneven(lambda _: 50.0, ONE_LONG), "s")
    assert flat.arrived == pytest.approx(50 * 2)
    assert not flat.rising
    rising = forecast_by(NextWindow(), uneven(lambda t: 10 + t, ONE_LONG), "s")
    # The window is 24..84 s; shifted by one sample of 2 s its middle is at 56 s, where the rate is 66.
    assert rising.arrived == pytest.approx(66 * 2)
    assert rising.reason is not None
    assert rising.reason.numbers["received_in_window"] == pytest.approx(66 * 60)


def test_a_window_is_a_length_of_time() -> None:
    """After a cycle of 60 s a window of 60 s holds that cycle and no other."""
    found = forecast_by(NextWindow(), uneven(lambda t: 10.0 if t < 100 else 20.0, [10.0] * 10 + [60.0]), "s")
    assert found.arrived == pytest.approx(20 * 60)


def test_the_snapshot_before_the_first_cycle_is_no_sample() -> None:
    run = line([100.0, 110.0, 120.0])
    before = replace(run[0], at_s=0.0, metrics=Metrics(()))
    run = [replace(s, at_s=s.at_s + 10.0) for s in run]
    assert forecast_by(NextWindow(), [before, *run], "s").rising
    assert forecast_by(NextWindow(), run, "s").reason is not None
    slopes = [
        found.reason.numbers["slope_rows_per_cycle"]
        for found in (forecast_by(NextWindow(), r, "s") for r in ([before, *run], run))
        if found.reason is not None
    ]
    assert slopes == pytest.approx([10.0, 10.0])


def test_a_constant_load_is_not_rising() -> None:
    for forecaster in (Trend(), TrendOrParents(), NextWindow(), Holt()):
        assert not forecast_by(forecaster, line([333.3] * 12), "s").rising


def test_last_value() -> None:
    assert forecast_by(LastValue(), line([5.0, 9.0, 7.0]), "s", 6).arrived == 7


def test_holt_follows_a_line_exactly() -> None:
    found = forecast_by(Holt(), line([100.0 + 50 * k for k in range(10)]), "s", 3)
    assert found.arrived == pytest.approx(550 + 150)
    assert found.rising


FORK = Topology(
    "fork",
    (Operator("s", 1, source=True), Operator("a", 1), Operator("b", 1)),
    (Edge("s", "a"), Edge("s", "b")),
)


def test_a_parent_counts_only_the_rows_it_sent_to_the_child() -> None:
    traffic = tuple(EdgeTraffic("fork", "s", child, np.array([[n]])) for child, n in (("a", 300.0), ("b", 100.0)))
    numbers = {"s": work(100, out=4), "a": work(300), "b": work(100)}
    now = seen(FORK, numbers, traffic=traffic)
    assert forecast_by(Parents(), [now], "a").arrived == pytest.approx(300)
    assert forecast_by(Parents(), [now], "b").arrived == pytest.approx(100)


def test_without_traffic_output_is_split_by_what_the_children_received() -> None:
    now = seen(FORK, {"s": work(100, out=4), "a": work(300), "b": work(100)})
    assert forecast_by(Parents(), [now], "a").arrived == pytest.approx(300)


def test_cycles_without_work_are_skipped_and_the_last_ratio_is_kept() -> None:
    topology = chain(Operator("s", 1, source=True), Operator("a", 1))
    busy = seen(topology, {"s": work(100, out=3), "a": work(300)})
    idle = seen(topology, {"s": InstanceMetrics(arrived=100, executed=0, pending=100), "a": work(0)})
    # delta of the five idle cycles is -100, so psi of the source would be 0; it reads again in the last
    found = forecast_by(TrendOrParents(phi=2), [busy, idle, idle, idle], "a")
    assert found.reason is not None
    assert found.reason.numbers["parents"] == 0
    again = seen(topology, {"s": InstanceMetrics(arrived=100, executed=300, emitted=0), "a": work(0)})
    assert forecast_by(Parents(phi=1), [busy, again], "a").arrived == 0


def test_a_topology_that_is_new_has_a_forecast_from_its_own_cycles_only() -> None:
    old, new = chain(Operator("s", 1, source=True), name="old"), chain(Operator("s", 1, source=True), name="new")
    before = [seen([old], {"old": {"s": work(100)}}) for _ in range(4)]
    now = seen([old, new], {"old": {"s": work(100)}, "new": {"s": work(50)}})
    found = Trend()([remembered(s) for s in before], now, 1)
    assert [o.arrived for o in found.operators] == [pytest.approx(100), pytest.approx(50)]
