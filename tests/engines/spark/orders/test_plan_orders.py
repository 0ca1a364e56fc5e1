"""What a plan changes of the orders, and how many moves and rescales that is."""

from typing import Any

from tests.cycles import chain, nodes, seen

from barograph.engines.spark.orders.plan_orders import ChangedOrders, change_orders
from barograph.model import Instance, InstanceMetrics, MigrationMode, Operator, Placement, Plan, Rescale, Slot

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))
A0, A1 = Instance("t", "a", 0), Instance("t", "a", 1)
HERE, THERE = Slot("n1", 0), Slot("n2", 0)


class FakeOrders:
    """Remembers whether the topology was changed; an order that waits is given by ``ordered``."""

    def __init__(self, ordered: bool = False) -> None:
        self.ordered, self.changed = ordered, 0

    def is_ordered(self, *_: object) -> bool:
        return self.ordered

    def change(self, *_: object) -> None:
        self.changed += 1

    def confirm(self, *_: object) -> bool:
        return False


def changed(plan: Plan, orders: Any) -> Any:
    placement = Placement(dict.fromkeys(TOPOLOGY.instances(), HERE))
    now = seen(TOPOLOGY, {"a": InstanceMetrics()}, cluster=nodes(2, 100), placement=placement)
    found = ChangedOrders()
    change_orders(found, orders, plan, now)
    return found


def test_moves_and_rescales_are_counted() -> None:
    orders = FakeOrders()
    plan = Plan(Placement({A0: THERE, A1: HERE, Instance("t", "a", 2): THERE}), (Rescale("t", "a", 3),))
    found = changed(plan, orders)
    assert (found.topologies, found.moves, found.rescales, orders.changed) == (["t"], 1, 1, 1)
    assert found.done == ["moved t/a/0 from n1/0 to n2/0", "scaled t/a from 2 to 3"]


def test_what_is_as_planned_already_counts_nothing() -> None:
    found = changed(Plan(Placement({A0: HERE})), FakeOrders())
    assert (found.topologies, found.moves, found.rescales, found.done) == ([], 0, 0, [])


def test_a_change_that_waits_for_a_boundary_is_not_counted_again() -> None:
    found = changed(Plan(Placement({A0: THERE}), mode=MigrationMode.BOUNDARY), FakeOrders(ordered=True))
    assert (found.topologies, found.moves, found.rescales) == ([], 0, 0)
    assert found.done == ["t changes at the end of its epoch, as ordered before"]
