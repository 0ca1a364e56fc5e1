"""Orders are remembered, so that a change that waits for its boundary is not sent again in each cycle."""

import logging
from collections.abc import Iterable, Mapping
from typing import cast

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on

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


def test_what_could_not_be_sent_is_not_ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner()
    found = orders_of(planner)
    found.begin("wordcount", Placement(dict.fromkeys(SPLIT, HERE)), {})

    def fail(*_: object) -> dict[str, int]:
        raise ConnectionResetError("the gateway is gone")

    found.change("wordcount", Placement(dict.fromkeys(SPLIT, THERE)), {})
    with monkeypatch.context() as broken, pytest.raises(ConnectionResetError):
        broken.setattr(planner, "order", fail)
        found.send(("wordcount",))
    assert not found.is_ordered("wordcount", dict.fromkeys(SPLIT, THERE), {}), "the next plan sends it again"
    found.send(("wordcount",))
    assert found.is_ordered("wordcount", dict.fromkeys(SPLIT, THERE), {})


def test_another_place_or_another_count_is_another_order() -> None:
    planner = Planner()
    found = orders_of(planner)
    found.begin("wordcount", Placement(dict.fromkeys(SPLIT, HERE)), {})
    assert found.is_ordered("wordcount", dict.fromkeys(SPLIT, HERE), {})
    assert not found.is_ordered("wordcount", {SPLIT[0]: HERE, SPLIT[1]: THERE}, {})
    assert not found.is_ordered("wordcount", dict.fromkeys(SPLIT, HERE), {"split": 3})
    assert len(planner.orders) == 1


def test_fewer_instances_and_their_return_are_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    executors = ("0", "1", "2")
    topology = FakeTopology((FakeOperator("split", executors),))
    engine = engine_on(FakePlugin({"counting": topology}, {e: f"host-{e}" for e in executors}), monkeypatch)
    engine.refresh()
    with caplog.at_level(logging.INFO, "barograph"):
        assert [engine.fit("counting", 2) for _ in range(3)] == [2, 2, 2]
        engine.keep_up()
        engine.keep_up()
    assert caplog.messages == [
        "counting: its next run has 2 instances of split, since 2 seats are left to it",
        "counting: its next epoch has 3 instances of split",
    ]
