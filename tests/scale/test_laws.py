"""Properties of every scaler, for all inputs."""

import pytest
from hypothesis import given, settings

from barograph.forecast import BestOf
from barograph.model import Cycle, Snapshot
from barograph.scale import Adaptive, CpuShare, Fixed, Measured, Parallelism, Scaler, TrueRate
from tests.cycles import WORD_COUNT, remembered, runs

ALL: list[Scaler] = [Adaptive(), CpuShare(), Fixed(), Measured(), Parallelism(window_s=30), TrueRate(window_s=30)]


@pytest.mark.parametrize("scaler", ALL, ids=lambda s: type(s).__name__)
@settings(max_examples=20, deadline=None)
@given(run=runs())
def test_every_operator_is_named_and_the_same_input_gives_the_same_demand(scaler: Scaler, run: list[Snapshot]) -> None:
    history: list[Cycle] = []
    for now in run:
        forecast = BestOf()(history, now, 1)
        demand = scaler(history, now, forecast)
        assert demand == scaler(history, now, forecast)
        assert [(o.topology, o.operator) for o in demand.operators] == [("wc", o.name) for o in WORD_COUNT.operators]
        for o in demand.operators:
            assert len(o.shares_pct) == o.parallelism >= 1
            assert len(o.held_pct) in (0, o.parallelism)  # nothing is held if nothing was measured
            assert all(0 <= share <= 100 for share in o.shares_pct)
            assert o.reason is not None and o.reason.why and o.reason.numbers
        history.append(remembered(now, demand))
