"""From a placement to a plan: what is named, and what is cut for it."""

import pytest

from barograph.migrate.plan import Migrate
from barograph.model import BadInput, Demand, Instance, MigrationMode, Operator, OperatorDemand, Placement, Slot
from tests.cycles import chain, nodes, seen, work

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))
S0, A0, A1 = (Instance("t", o, i) for o, i in (("s", 0), ("a", 0), ("a", 1)))
N1, N2 = Slot("n1", 0), Slot("n2", 0)
NOW = seen(
    TOPOLOGY, {"s": work(10), "a": work(10)}, cluster=nodes(2, 60), placement=Placement({S0: N1, A0: N1, A1: N2})
)
DEMAND = Demand((OperatorDemand("t", "s", 1, (10.0,)), OperatorDemand("t", "a", 2, (20.0, 20.0))))
FEWER = Demand((OperatorDemand("t", "s", 1, (10.0,)), OperatorDemand("t", "a", 1, (20.0,))))

CASES = {
    "nothing moves": ({S0: N1, A0: N1, A1: N2}, DEMAND, {}, ()),
    "one moves": ({S0: N1, A0: N2, A1: N2}, DEMAND, {A0: N2}, ("t",)),
    "an instance that could not be placed stays": ({S0: N1, A0: N1}, DEMAND, {}, ()),
    "no instance could be placed": ({}, DEMAND, {}, ()),
    "one moves, one could not be placed": ({S0: N2, A0: N1}, DEMAND, {S0: N2}, ("t",)),
    "one is no longer wanted": ({S0: N1, A0: N1}, FEWER, {}, ("t",)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_cut(case: str) -> None:
    target, demand, moved, cuts = CASES[case]
    plan = Migrate(MigrationMode.CUT)((), NOW, demand, Placement(target))
    assert dict(plan.placement.slots) == moved
    assert plan.cuts == cuts


def test_only_a_warm_cut_has_something_that_could_wait() -> None:
    target = Placement({S0: N1, A0: N2, A1: N2})
    assert Migrate(MigrationMode.WARM_CUT, delay_s=2.0)((), NOW, DEMAND, target).delay_s == 2.0
    assert Migrate(MigrationMode.CUT, delay_s=2.0)((), NOW, DEMAND, target).delay_s == 0.0
    with pytest.raises(BadInput, match="delay_s must be a number of at least 0"):
        Migrate(delay_s=-1.0)
