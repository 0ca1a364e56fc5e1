"""What holds for every forecaster and all inputs."""

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
from barograph.model import BadInput, Snapshot
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
    """100 lines a second throughout; a move made one cycle twice as long and one half as long."""
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
def test_a_horizon_of_none_is_refused(forecaster: ByFrame) -> None:
    with pytest.raises(BadInput, match="horizon_cycles"):
        forecaster([], seen(WORD_COUNT, {"spout": work(1)}), 0)


@each
def test_an_empty_world_has_an_empty_forecast(forecaster: ByFrame) -> None:
    empty = Snapshot(0.0, 10.0, (), ())
    assert forecaster([remembered(empty)] * 3, empty, 1).operators == ()
