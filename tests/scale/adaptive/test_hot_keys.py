"""Which instance is hot because of its keys, and when it is one key."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cycles import chain, remembered, seen, work

from barograph.model import (
    Cycle,
    Demand,
    EdgeTraffic,
    Frame,
    Grouping,
    Operator,
    OperatorDemand,
    ReasonCode,
    Snapshot,
)
from barograph.scale.adaptive.hot_keys import HotInstance, hot_reason, hottest, key_part, part_of_key


def cycle(*rows: float, grouping: Grouping = Grouping.FIELDS, senders: int = 2) -> Snapshot:
    topology = chain(Operator("s", senders, source=True), Operator("count", len(rows)), grouping=grouping)
    numbers = {"s": work(sum(rows), ms=0.1), "count": [work(r) for r in rows]}
    matrix = np.tile(np.array(rows) / senders, (senders, 1))
    return seen(topology, numbers, traffic=(EdgeTraffic("t", "s", "count", matrix),))


def found(*cycles: Snapshot, known: float = 0.0) -> HotInstance | None:
    *earlier, now = cycles
    history: list[Cycle] = [remembered(c) for c in earlier]
    if known and history:
        demand = OperatorDemand("t", "count", 2, (1.0, 1.0), key_part=known)
        history[-1] = replace(history[-1], demand=Demand((demand,)))
    return hottest(history, Frame.of(history, now), now.topologies[0], "count")


def test_the_matrix_shows_the_hot_instance() -> None:
    hot = found(cycle(100, 700, 100, 100))
    assert hot is not None
    assert (hot.index, hot.even, hot.key_part) == (1, 0.25, 0.0)
    assert hot.part == pytest.approx(0.7)
    assert found(cycle(250, 350, 200, 200)) is None, "keys are never quite even"
    assert found(cycle(100, 700, 100, 100, grouping=Grouping.SHUFFLE)) is None, "shuffled rows have no keys"
    assert found(cycle(1000.0)) is None and found(cycle(0, 0, 0)) is None


@pytest.mark.parametrize("instances", [2, 3, 10])
def test_the_part_of_a_key_and_of_its_instance(instances: int) -> None:
    assert key_part(part_of_key(0.4, instances), instances) == pytest.approx(0.4)
    assert key_part(1 / instances, instances) == 0.0


def test_a_part_that_more_instances_do_not_lower_is_one_key() -> None:
    """Half of the rows have one key: 75 % with two instances, 62.5 % with four."""
    hot = found(cycle(750, 250), cycle(125, 625, 125, 125))
    assert hot is not None and hot.key_part == pytest.approx(0.5)
    assert hot.before is not None and hot.before[0] == 2
    assert hot.before[1] == pytest.approx(0.75)


def test_keys_that_are_parted_by_more_instances_are_not_one_key() -> None:
    """Two keys with a quarter of the rows each shared an instance of two, and do not share one of four."""
    hot = found(cycle(750, 250), cycle(375, 375, 125, 125))
    assert hot is not None and hot.key_part == 0.0


def test_what_was_found_is_remembered_while_it_explains_what_is_seen() -> None:
    hot = found(cycle(125, 625, 125, 125), cycle(125, 625, 125, 125), known=0.5)
    assert hot is not None and hot.key_part == pytest.approx(0.5)
    hot = found(*[cycle(210, 380, 210, 200)] * 5, known=0.7)
    assert hot is not None and hot.key_part == 0.0, "a key's part is never above that of the hottest instance"


def test_what_is_said() -> None:
    demand = OperatorDemand("t", "count", 4, (10.0, 80.0, 10.0, 10.0))
    hot = HotInstance(1, 0.7, 0.25)
    said = hot_reason(demand, hot, 60.0, 100.0, 0.75)
    assert said is not None and (said.about, said.code) == ("t/count/1", ReasonCode.HOT_INSTANCE)
    assert said.why.startswith("70% of the rows of count go to it because of their keys: its share is 80 %")
    assert said.why.endswith("that of the others 10 % on the mean")
    assert hot_reason(demand, hot, 5.0, 100.0, 0.75) is None, "it needs next to nothing"
    key = HotInstance(1, 0.7, 0.25, key_part=0.6, before=(2, 0.8))
    said = hot_reason(demand, key, 140.0, 100.0, 0.75)
    assert said is not None and said.code is ReasonCode.ONE_KEY_TOO_MUCH
    assert said.numbers["key_pct"] == pytest.approx(120.0)
    small = hot_reason(demand, key, 60.0, 100.0, 0.75)
    assert small is not None and small.code is ReasonCode.HOT_INSTANCE, "one key, and not too much"
