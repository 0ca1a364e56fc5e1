"""The shares that a policy asked for, in numbers worked out by hand."""

from dataclasses import replace

import pytest
from tests.cycles import chain, nodes, remembered, seen, work

from barograph.experiments.figures.asked_shares import asked
from barograph.model import Cycle, Demand, Operator, OperatorDemand

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))


def cycle(shares: tuple[float, float]) -> Cycle:
    now = seen(TOPOLOGY, {"s": work(10), "a": work(10)}, cluster=nodes(2, 60))
    return remembered(now, Demand((OperatorDemand("t", "a", 2, shares, shares),)))


def test_shares_of_an_operator() -> None:
    found = asked([(0.0, cycle((10.0, 30.0))), (5.0, cycle((20.0, 60.0)))], 20.0)
    assert found["a"].mean_pct == pytest.approx((5 * 20 + 15 * 40) / 20)
    assert (found["a"].max_pct, found["a"].instances) == (60, 2)


def test_a_guess_is_no_demand() -> None:
    guess = replace(cycle((90.0, 90.0)), demand=Demand((OperatorDemand("t", "a", 2, (90.0, 90.0)),)))
    assert asked([(0.0, guess)], 5.0) == {}


def test_an_estimate_is_no_demand() -> None:
    measured = cycle((10.0, 30.0))
    assert asked([(0.0, replace(measured, demand=replace(measured.demand, reserved=False)))], 5.0) == {}
