"""CPU allotted over a run, and the shares behind it, in numbers worked out by hand."""

from dataclasses import replace

import pytest
from tests.cycles import chain, nodes, remembered, seen, work

from barograph.experiments.spent import spent
from barograph.model import Cycle, Demand, Instance, Operator, OperatorDemand, Outcome, Placement, Plan, Refusal, Slot

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))
S0, A0, A1 = (Instance("t", o, i) for o, i in (("s", 0), ("a", 0), ("a", 1)))
HERE = Placement({S0: Slot("n1", 0), A0: Slot("n1", 0), A1: Slot("n2", 0)})


def cycle(shares: dict[Instance, float], asked: tuple[float, float] = (30.0, 50.0), ok: bool = True) -> Cycle:
    now = seen(TOPOLOGY, {"s": work(10), "a": work(10)}, cluster=nodes(2, 60), placement=HERE)
    demand = Demand((OperatorDemand("t", "a", 2, asked, asked),))
    refused = () if ok else (Refusal("the plan", "no"),)
    return replace(remembered(now, demand, plan=Plan(limits_pct=shares)), outcome=Outcome(refused=refused))


CASES = {
    "no limits: a core each, a node no more than it has": ([(0.0, cycle({}))], 10.0, 10 * (0.6 + 0.6)),
    "limits": ([(0.0, cycle({S0: 10, A0: 20, A1: 30}))], 10.0, 10 * 0.6),
    "who has no limit fills its node": ([(0.0, cycle({A0: 20, A1: 30}))], 10.0, 10 * (0.6 + 0.3)),
    "limits hold until they are changed": (
        [(0.0, cycle({S0: 10, A0: 20, A1: 30})), (4.0, cycle({A1: 10}))], 10.0, 4 * 0.6 + 6 * 0.4,
    ),
    "a plan that was refused changes nothing": (
        [(0.0, cycle({S0: 10, A0: 20, A1: 30})), (4.0, cycle({A1: 10}, ok=False))], 10.0, 10 * 0.6,
    ),
    "before the load and after it nothing counts": (
        [(-6.0, cycle({S0: 10, A0: 20, A1: 30})), (-2.0, cycle({A1: 10})), (12.0, cycle({A1: 60}))], 10.0, 10 * 0.4,
    ),
    "nobody decided": ([], 10.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_allotted(name: str) -> None:
    cycles, seconds, core_s = CASES[name]
    assert spent(cycles, seconds).allotted_core_s == pytest.approx(core_s)


def test_shares_of_an_operator() -> None:
    found = spent([(0.0, cycle({}, (10.0, 30.0))), (5.0, cycle({}, (20.0, 60.0)))], 20.0).shares
    assert found["a"].mean_pct == pytest.approx((5 * 20 + 15 * 40) / 20)
    assert (found["a"].max_pct, found["a"].instances) == (60, 2)


def test_a_guess_is_no_demand() -> None:
    guess = cycle({})
    guess = replace(guess, demand=Demand((OperatorDemand("t", "a", 2, (90.0, 90.0)),)))
    assert spent([(0.0, guess)], 5.0).shares == {}
