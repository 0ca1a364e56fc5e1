"""Orders are remembered, so that a change that waits for its boundary is not sent again in each cycle."""

from collections.abc import Iterable, Mapping
from typing import cast

from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.bridge.telemetry import Telemetry
from barograph.engines.spark.orders.placement_orders import PlacementOrders, TopologyOrder
from barograph.model import Instance, Placement, Slot

SPLIT = [Instance("wordcount", "split", k) for k in range(2)]
HERE, THERE = Slot("node-1"), Slot("node-2")


class Planner:
    """Takes orders and cuts nothing."""

    def __init__(self) -> None:
        self.orders: list[Mapping[str, TopologyOrder]] = []

    def order(self, orders: Mapping[str, TopologyOrder], cut: Iterable[str]) -> dict[str, int]:  # noqa: ARG002
        self.orders.append(orders)
        return {}


def orders_of(planner: Planner) -> PlacementOrders:
    return PlacementOrders(cast(Bridge, planner), Telemetry(), lambda: {HERE: "1", THERE: "2"}, lambda _: 8)


def test_nothing_is_ordered_before_it_was_sent() -> None:
    found = orders_of(Planner())
    places = dict.fromkeys(SPLIT, HERE)
    assert not found.is_ordered("wordcount", places, {})
    found.change("wordcount", Placement(places), {"split": 2})
    assert not found.is_ordered("wordcount", places, {"split": 2})
    found.send(("wordcount",))
    assert found.is_ordered("wordcount", places, {"split": 2})


def test_another_place_or_another_count_is_another_order() -> None:
    planner = Planner()
    found = orders_of(planner)
    found.begin("wordcount", Placement(dict.fromkeys(SPLIT, HERE)), {})
    assert found.is_ordered("wordcount", dict.fromkeys(SPLIT, HERE), {})
    assert not found.is_ordered("wordcount", {SPLIT[0]: HERE, SPLIT[1]: THERE}, {})
    assert not found.is_ordered("wordcount", dict.fromkeys(SPLIT, HERE), {"split": 3})
    assert len(planner.orders) == 1
