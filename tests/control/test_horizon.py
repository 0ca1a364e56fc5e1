"""How far ahead a controller forecasts: as far as its changes take."""

from dataclasses import replace

from tests.cycles import remembered, word_count_cycles

from barograph.control.horizon import horizon_cycles
from barograph.model import Outcome
from barograph.policy.registry import named

POLICY, CYCLE_S = named("adaptive"), 5.0


def test_forecasts_reach_as_far_as_changes_take() -> None:
    snapshot = word_count_cycles()[0]

    def took(seconds: float | None, ok: bool = True) -> list:  # type: ignore[type-arg]
        outcome = Outcome(("all",), (), seconds) if ok else None
        return [replace(remembered(snapshot), outcome=outcome)]

    assert horizon_cycles(POLICY, CYCLE_S, []) == 1
    assert horizon_cycles(POLICY, CYCLE_S, took(2.0)) == 1
    assert horizon_cycles(POLICY, CYCLE_S, took(3.0)) == 2
    assert horizon_cycles(POLICY, CYCLE_S, took(11.0) + took(None)) == 3
    assert horizon_cycles(POLICY, CYCLE_S, took(60.0) + took(1.0) * 5) == 1, "old changes are forgotten"
    assert horizon_cycles(POLICY, CYCLE_S, took(9.0, ok=False)) == 1
