"""A broker that is killed comes back at once, unless a later action starts it."""

from typing import cast

import pytest

from barograph.config.written.actions import parse_action
from barograph.engines.spark.engine import SparkEngine
from barograph.experiments.running.faults import Killable, inject
from barograph.kafka import Broker
from barograph.model import BadInput

ENGINE = cast(SparkEngine, None)


class FakeBroker:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def kill(self) -> None:
        self.calls.append("kill")

    def start(self) -> None:
        self.calls.append("start")


@pytest.mark.parametrize(
    ("orders", "calls"),
    [
        (["5:kill broker"], ["kill", "start"]),
        (["5:kill broker", "9:start broker"], ["kill", "start"]),
        (["5:kill broker", "3:start broker"], ["kill", "start", "start"]),
    ],
)
def test_the_broker_is_started_once(orders: list[str], calls: list[str]) -> None:
    broker = FakeBroker()
    actions = [parse_action(text, "wordcount") for text in orders]
    said = [inject(a, Killable(None, cast(Broker, broker)), ENGINE, actions) for a in actions]
    assert broker.calls == calls
    again = "" if orders[1:] == ["9:start broker"] else " and started it again"
    assert said[0] == f"killed the broker{again}"


def test_there_may_be_no_broker() -> None:
    action = parse_action("5:kill broker", "wordcount")
    with pytest.raises(BadInput, match="has started no broker"):
        inject(action, Killable(None), ENGINE, [action])
