"""Properties of every forecaster, for all inputs."""

from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.forecast import (
    BestOf,
    ByFrame,
    Holt,
    LastValue,
    NextWindow,
    Parents,
    Trend,
    TrendOrParents,
)
from barograph.model import BadInput, Frame, Snapshot
from tests.cycles import WORD_COUNT, remembered, runs, seen, work

ALL: list[ByFrame] = [LastValue(), Trend(), Parents(), TrendOrParents(), NextWindow(), Holt(), BestOf()]
each = pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)


@each
@settings(max_examples=25, deadline=None)
@given(run=runs(), horizon=st.sampled_from([1, 3, 6]))
def test_never_negative_and_every_operator_named(forecaster: ByFrame, run: list[Snapshot], horizon: int) -> None:
    history = [remembered(s) for s in run[:-1]]
    found = forecaster(history, run[-1], horizon)
    assert [(o.topology, o.operator) for o in found.operators] == [("wc", o.name) for o in WORD_COUNT.order]
    assert all(o.arrived >= 0 and o.executed >= 0 and o.reason is not None for o in found.operators)
    assert found == forecaster(history, run[-1], horizon)


@each
def test_a_longer_cycle_is_no_trend(forecaster: ByFrame) -> None:
    """100 lines a second throughout; one cycle is twice as long and one half as long."""
    run, at_s = [], 0.0
    for cycle_s in (10.0, 10.0, 10.0, 20.0, 5.0, 10.0):
        at_s += cycle_s
        lines = 100.0 * cycle_s
        numbers = {"spout": work(lines), "split": work(lines, out=5), "count": work(5 * lines, out=0)}
        run.append(seen(WORD_COUNT, numbers, cycle_s=cycle_s, at_s=at_s))
    for known in range(1, len(run) + 1):
        now = run[known - 1]
        found = forecaster([remembered(s) for s in run[: known - 1]], now, 1)
        rates = [o.arrived / now.cycle_s for o in found.operators]
        assert rates == pytest.approx([100, 100, 500])


@each
def test_a_horizon_of_zero_cycles_is_refused(forecaster: ByFrame) -> None:
    with pytest.raises(BadInput, match="horizon_cycles"):
        forecaster([], seen(WORD_COUNT, {"spout": work(1)}), 0)


@each
def test_a_snapshot_without_topologies_has_an_empty_forecast(forecaster: ByFrame) -> None:
    empty = Snapshot(0.0, 10.0, (), ())
    assert forecaster([remembered(empty)] * 3, empty, 1).operators == ()


@settings(max_examples=50, deadline=None)
@given(
    lengths_s=st.lists(st.floats(0.5, 40), min_size=2, max_size=20),
    first=st.floats(0, 1000),
    slope=st.floats(0, 20),
)
def test_autoscale_forecasts_a_linear_load_exactly_whatever_the_lengths_of_the_cycles(
    lengths_s: list[float], first: float, slope: float
) -> None:
    """The rate at each sample's middle, shifted by one sample, is the rate of the load at that time."""
    history, at_s = [], 0.0
    for length_s in lengths_s:
        at_s += length_s
        numbers = {o.name: work((first + slope * (at_s - length_s / 2)) * length_s) for o in WORD_COUNT.operators}
        history.append(remembered(seen(WORD_COUNT, numbers, cycle_s=length_s, at_s=at_s)))
    *earlier, last = history
    found = NextWindow(window_s=60.0)(earlier, last.snapshot, 1).operators[0]
    frame = Frame.of(earlier, last.snapshot)
    count = frame.window(60.0)
    samples_s, ahead_s = lengths_s[-count:], median(lengths_s[-count:])
    middle_s = frame.middle_s[-count:] + at_s + ahead_s
    expected = sum((first + slope * m) * length for m, length in zip(middle_s, samples_s, strict=True)) / sum(samples_s)
    if count > 1:
        assert found.arrived == pytest.approx(expected * lengths_s[-1], rel=1e-6, abs=1e-6)
    else:
        assert found.arrived == pytest.approx((expected - slope * ahead_s) * lengths_s[-1], rel=1e-6, abs=1e-6)


@each
@settings(max_examples=40, deadline=None)
@given(
    lengths_s=st.lists(st.floats(0.3, 60), min_size=1, max_size=25),
    rate=st.floats(1, 1e5),
    horizon=st.sampled_from([1, 3, 6]),
)
def test_a_constant_load_has_one_forecast_however_time_is_cut_into_cycles(
    forecaster: ByFrame, lengths_s: list[float], rate: float, horizon: int
) -> None:
    """In rows a second, within 1 %; and it does not rise."""
    history, at_s = [], 0.0
    for length_s in lengths_s:
        at_s += length_s
        lines = rate * length_s
        numbers = {"spout": work(lines), "split": work(lines, out=5), "count": work(5 * lines, out=0)}
        history.append(remembered(seen(WORD_COUNT, numbers, cycle_s=length_s, at_s=at_s)))
    *earlier, last = history
    found = forecaster(earlier, last.snapshot, horizon)
    rates = [o.arrived / last.snapshot.cycle_s for o in found.operators]
    assert rates == pytest.approx([rate, rate, 5 * rate], rel=0.01)
    assert [o.executed / last.snapshot.cycle_s for o in found.operators] == pytest.approx(rates, rel=0.01)
    assert not any(o.rising for o in found.operators)
