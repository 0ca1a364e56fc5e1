"""Which shares are sent when, and what is said about executors that do not hold limits as asked."""

import pytest

from barograph.engines.spark.bridge.reports import Executor
from barograph.engines.spark.orders.share_orders import ShareOrders, Shares, no_limits_because, shortfalls
from barograph.model import Instance, Plan, RefusalCode

A, B = Instance("t", "split", 0), Instance("t", "split", 1)


def test_all_shares_are_sent_when_one_changes() -> None:
    sent: list[Shares] = []
    orders = ShareOrders(sent.append)
    assert orders.order(Plan(limits_pct={A: 50.0}, shares_pct={A: 20.0, B: 10.0})) == [f"limit of {A} is 50 %"]
    assert orders.order(Plan(limits_pct={B: 30.0})) == [f"limit of {B} is 30 %"]
    assert orders.order(Plan()) == []
    assert sent == [{A: (50.0, 20.0), B: (100.0, 10.0)}, {A: (50.0, 20.0), B: (30.0, 10.0)}]
    assert (orders.limits_pct, orders.shares_pct) == ({A: 50.0, B: 30.0}, {A: 20.0, B: 10.0})


def test_a_reservation_without_a_limit_is_sent_too() -> None:
    """It is a weight where there are control groups, and holds where all instances together are limited."""
    sent: list[Shares] = []
    assert ShareOrders(sent.append).order(Plan(shares_pct={A: 20.0})) == []
    assert sent == [{A: (100.0, 20.0)}]


def test_what_could_not_be_sent_is_sent_with_the_next_plan() -> None:
    sent: list[Shares] = []

    def send(shares: Shares) -> None:
        sent.append(shares)
        if len(sent) == 1:
            raise OSError("the gateway is gone")

    orders = ShareOrders(send)
    with pytest.raises(OSError, match="gateway"):
        orders.order(Plan(limits_pct={A: 50.0}))
    assert orders.order(Plan(limits_pct={A: 50.0})) == [f"limit of {A} is 50 %"]
    assert len(sent) == 2


def test_only_limits_of_a_controller_are_lifted_and_shares_stay() -> None:
    """A controller says from which state it made its plan, a plan by hand does not. The last order counts."""
    sent: list[Shares] = []
    orders = ShareOrders(sent.append)
    orders.order(Plan(limits_pct={A: 50.0, B: 40.0}, shares_pct={A: 20.0, B: 10.0}, version=3))
    orders.order(Plan(limits_pct={B: 30.0}))
    assert orders.lift() == [A]
    assert sent[-1] == {A: (100.0, 20.0), B: (30.0, 10.0)}
    assert orders.lift() == [] and len(sent) == 3
    orders.order(Plan(limits_pct={A: 50.0, B: 30.0}, version=4))
    assert sent[-1] == {A: (50.0, 20.0), B: (30.0, 10.0)}
    assert orders.lift() == [A, B]


def test_limits_that_could_not_be_lifted_are_lifted_again() -> None:
    sent: list[Shares] = []

    def send(shares: Shares) -> None:
        sent.append(shares)
        if len(sent) == 2:
            raise OSError("the gateway is gone")

    orders = ShareOrders(send)
    orders.order(Plan(limits_pct={A: 50.0}, version=1))
    with pytest.raises(OSError, match="gateway"):
        orders.lift()
    assert orders.lift() == [A]
    assert sent[-1] == {A: (100.0, 0.0)}


def test_a_plan_that_failed_leaves_limits_to_those_who_ordered_them() -> None:
    orders = ShareOrders(lambda _: None)
    orders.order(Plan(limits_pct={A: 50.0, B: 40.0}, version=1))
    orders.order(Plan(limits_pct={B: 40.0}))
    before = orders.ordered
    orders.order(Plan(limits_pct={A: 60.0, B: 60.0}, version=2))
    orders.take_back(before)
    assert orders.lift() == [A]


def says(name: str, way: str, because: str = "") -> Executor:
    return Executor(name, "h", 4, 4, enforces=way, enforces_because=because)


def test_limits_are_off_only_if_all_executors_say_so() -> None:
    assert no_limits_because([says("0", "off", "why"), says("1", "off", "why")]) == "why"
    assert no_limits_because([says("0", "off", "why"), says("1", "cooperative")]) == ""
    assert no_limits_because([says("0", "off", "why"), says("1", "")]) == "", "it has not said yet"
    assert no_limits_because([]) == ""


def test_what_executors_say_against_their_way_is_listed() -> None:
    said = [says("0", "off", "a"), says("1", "cooperative", "b"), says("2", "cgroup")]
    found = shortfalls(said, "executor {}".format)
    assert [(r.what, r.code, r.reason) for r in found] == [
        ("CPU limits of executor 0", RefusalCode.NO_LIMITS, "a"),
        ("control groups of executor 1", RefusalCode.OTHER_WAY, "b; limits: cooperative"),
    ]


def test_news_are_said_once() -> None:
    orders = ShareOrders(lambda _: None)
    first = shortfalls([says("0", "off", "a")], str)
    assert orders.news(first) == tuple(first)
    assert orders.news(first) == ()
    assert orders.news([]) == ()
    assert orders.news(first) == tuple(first), "it came back"
