"""A new executor is prepared for instances, also if none is ordered to run there."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.bridge.telemetry import Telemetry
from barograph.engines.spark.orders.placement_orders import ANY, PlacementOrders
from barograph.model import Instance, Placement, Slot

SPLIT = [Instance("wordcount", "split", k) for k in range(2)]
SLOTS = {Slot("node-1"): "1", Slot("node-2"): "2"}


class PreparingBridge:
    def __init__(self) -> None:
        self.warmed: list[tuple[str, list[tuple[int, str]]]] = []
        self.called = threading.Semaphore(0)

    def warm(self, topology: str, moves: list[tuple[int, str]], _timeout_s: float) -> bool:
        self.warmed.append((topology, moves))
        self.called.release()
        return True

    def order(self, *_: object) -> dict[str, int]:
        return {}


class Reported:
    """Executor 1 runs both instances."""

    def __init__(self, is_up: bool) -> None:
        self.topologies = {"wordcount": None}
        seated = dict.fromkeys(SPLIT, SimpleNamespace(executor="1"))
        self._present = SimpleNamespace(is_up=is_up, seated=seated, executor_of=lambda _: "1")

    def present(self, _topology: str) -> Any:
        return self._present


def prepared(
    is_new: bool = True, is_up: bool = True, free: int = 8, home: Placement | None = None
) -> list[tuple[str, list[tuple[int, str]]]]:
    """What is prepared when executor 2 is there, from the beginning or since the second look."""
    bridge = PreparingBridge()
    there = {slot: e for slot, e in SLOTS.items() if e == "1" or not is_new}
    orders = PlacementOrders(cast(Bridge, bridge), cast(Telemetry, Reported(is_up)), lambda: there, lambda _: free)
    if home is not None:
        orders.begin("wordcount", home, {})
    orders.restore()
    there.update(SLOTS)
    orders.restore()
    orders.restore()
    for thread in [t for t in threading.enumerate() if t.name == "barograph-warm"]:
        thread.join(10)
    return bridge.warmed


def test_a_new_executor_is_prepared_once() -> None:
    assert prepared() == [("wordcount", [(ANY, "2")])]


def test_the_state_of_instances_that_return_is_read_too() -> None:
    assert prepared(home=Placement({SPLIT[1]: Slot("node-2")})) == [("wordcount", [(1, "2"), (ANY, "2")])]


@pytest.mark.parametrize(
    "why",
    [{"is_new": False}, {"is_up": False}, {"free": 3}],
    ids=["it is not new", "the topology is not up", "no seat to spare"],
)
def test_nothing_is_prepared(why: dict[str, Any]) -> None:
    assert prepared(**why) == []
