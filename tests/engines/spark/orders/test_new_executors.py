"""A new executor is prepared for instances, also if none is ordered to run there."""

import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.bridge.telemetry import Telemetry
from barograph.engines.spark.orders.placement_orders import ANY, COLD_S, PlacementOrders
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
    """Executor 1 runs both instances. Executor 2 is as old as it is said to be."""

    def __init__(self, age_s: float, is_up: bool) -> None:
        since_ms = (time.time() - age_s) * 1000
        self.executors = [SimpleNamespace(id="1", since_ms=0), SimpleNamespace(id="2", since_ms=since_ms)]
        self.topologies = {"wordcount": None}
        self._present = SimpleNamespace(is_up=is_up, seated=dict.fromkeys(SPLIT, SimpleNamespace(executor="1")))

    def present(self, _topology: str) -> Any:
        return self._present


def prepared(
    age_s: float = 1.0, is_up: bool = True, free: int = 8, home: Placement | None = None
) -> list[tuple[str, list[tuple[int, str]]]]:
    """What is prepared when orders are restored twice."""
    bridge = PreparingBridge()
    telemetry = cast(Telemetry, Reported(age_s, is_up))
    orders = PlacementOrders(cast(Bridge, bridge), telemetry, lambda: SLOTS, lambda _: free)
    if home is not None:
        orders.begin("wordcount", home, {})
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
    [{"age_s": COLD_S + 1}, {"is_up": False}, {"free": 3}],
    ids=["it is not new", "the topology is not up", "no seat to spare"],
)
def test_nothing_is_prepared(why: dict[str, Any]) -> None:
    assert prepared(**why) == []
