"""The forecaster that scores the others on the topology's own history."""

from barograph.forecast import BestOf, LastValue, Trend
from barograph.model import Operator, Snapshot
from tests.cycles import chain, remembered, seen, work

TWO = [chain(Operator("s", 1, source=True), name="steady"), chain(Operator("s", 1, source=True), name="jumpy")]


def snapshots() -> list[Snapshot]:
    """One topology grows linearly, the other alternates so that any trend is misleading."""
    jumps = [100.0, 100.0, 900.0, 900.0] * 5
    return [
        seen(TWO, {"steady": {"s": work(100.0 + 20 * k)}, "jumpy": {"s": work(jump)}}, at_s=10.0 * k)
        for k, jump in enumerate(jumps)
    ]


def test_each_operator_gets_the_forecaster_with_the_least_error() -> None:
    *earlier, now = snapshots()
    found = BestOf((LastValue(), Trend()))([remembered(s) for s in earlier], now, 1)
    steady, jumpy = found.of("steady", "s"), found.of("jumpy", "s")
    assert steady is not None and jumpy is not None
    assert steady.reason is not None and jumpy.reason is not None
    assert steady.reason.why.startswith("trend had the least error")
    assert jumpy.reason.why.startswith("last-value had the least error")
    assert steady.arrived == 500
    assert jumpy.arrived == 900


def test_the_choice_depends_on_the_horizon() -> None:
    """Two cycles ahead, the jumpy load never has its present value: there the trend has the smaller error."""
    *earlier, now = snapshots()
    found = BestOf((LastValue(), Trend()))([remembered(s) for s in earlier], now, 2).of("jumpy", "s")
    assert found is not None and found.reason is not None
    assert found.reason.why.startswith("trend had the least error")


def test_with_nothing_to_score_the_first_listed_counts() -> None:
    found = BestOf()([], snapshots()[0], 1).of("steady", "s")
    assert found is not None and found.arrived == 100
