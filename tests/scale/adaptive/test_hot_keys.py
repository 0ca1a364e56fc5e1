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
    Reason,
    ReasonCode,
    Snapshot,
)
from barograph.scale.adaptive.hot_keys import (
    HotInstance,
    HotOperator,
    hot_instances,
    hot_reasons,
    key_part,
    part_of_key,
)


def cycle(*rows: float, grouping: Grouping = Grouping.FIELDS, senders: int = 2) -> Snapshot:
    topology = chain(Operator("s", senders, source=True), Operator("count", len(rows)), grouping=grouping)
    numbers = {"s": work(sum(rows), ms=0.1), "count": [work(r) for r in rows]}
    matrix = np.tile(np.array(rows) / senders, (senders, 1))
    return seen(topology, numbers, traffic=(EdgeTraffic("t", "s", "count", matrix),))


def all_found(*cycles: Snapshot, known: float = 0.0) -> tuple[HotInstance, ...]:
    *earlier, now = cycles
    history: list[Cycle] = [remembered(c) for c in earlier]
    if known and history:
        demand = OperatorDemand("t", "count", 2, (1.0, 1.0), key_part=known)
        history[-1] = replace(history[-1], demand=Demand((demand,)))
    return hot_instances(history, Frame.of(history, now), now.topologies[0], "count")


def found(*cycles: Snapshot, known: float = 0.0) -> HotInstance | None:
    """The hottest."""
    return next(iter(all_found(*cycles, known=known)), None)


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


def test_every_hot_instance_is_found_hottest_first() -> None:
    """Two keys with a third of the rows each, and eight instances."""
    parts = (50, 370, 50, 50, 50, 330, 50, 50)
    assert [(hot.index, hot.key_part) for hot in all_found(cycle(*parts))] == [(1, 0.0), (5, 0.0)]
    first, second = all_found(cycle(60, 400, 60, 340), cycle(*parts))
    assert first.key_part == pytest.approx(key_part(0.37, 8))
    assert second.key_part == pytest.approx(key_part(0.33, 8)), "it is no smaller than a key beside the first one"
    one, other = all_found(cycle(60, 740, 100, 100), cycle(40, 600, 40, 40, 200, 40, 20, 20))
    assert one.key_part > 0 and other.key_part == 0.0


def said(hot: HotInstance, cpu_pct: float, busy: float | None = None, stuck: str = "") -> list[Reason]:
    """cpu_pct: what all rows need. An instance can use a core, and should use three quarters of it."""
    demand = OperatorDemand("t", "count", 4, (10.0, 80.0, 10.0, 10.0))
    operator = HotOperator((hot,), cpu_pct, cpu_pct / 100 if busy is None else busy)
    return list(hot_reasons(demand, operator, 100.0, 0.75, stuck))


HOT = HotInstance(1, 0.7, 0.25)
KEY = HotInstance(1, 0.7, 0.25, key_part=0.6, before=(2, 0.8))


def test_what_is_said() -> None:
    (hot,) = said(HOT, 85.0)
    assert (hot.about, hot.code) == ("t/count/1", ReasonCode.HOT_INSTANCE)
    assert hot.why.startswith("70% of the rows of count go to it because of their keys: its share is 80 %")
    assert hot.why.endswith("that of the others 10 % on the mean")
    assert said(HOT, 7.0) == [], "it needs next to nothing"
    (key,) = said(KEY, 200.0)
    assert key.code is ReasonCode.ONE_KEY_TOO_MUCH and "only the query can divide that key" in key.why
    assert key.numbers["key_pct"] == pytest.approx(120.0)
    assert "one key needs 120 % of a core, and an instance can use 100 % (75 % without a queue)" in key.why
    (small,) = said(KEY, 85.0)
    assert small.code is ReasonCode.HOT_INSTANCE, "one key, and not too much"


def test_a_key_whose_rows_wait_is_too_much_for_the_time_of_an_instance() -> None:
    """Its rows need next to no CPU, and two instances' time."""
    (key,) = said(KEY, 4.0, busy=2.0)
    assert key.code is ReasonCode.ONE_KEY_TOO_MUCH
    assert "one key keeps an instance busy for 120% of its time (75% is the most without a queue)" in key.why


def test_keys_that_no_more_instances_may_part_are_too_much_as_well() -> None:
    (reason,) = said(HOT, 200.0, stuck="there may be at most 4 instances")
    assert reason.code is ReasonCode.ONE_KEY_TOO_MUCH
    assert "it needs 140 % of a core" in reason.why and "there may be at most 4 instances; let" in reason.why
    (enough,) = said(HOT, 100.0, stuck="there may be at most 4 instances")
    assert enough.code is ReasonCode.HOT_INSTANCE, "it executes what it gets"
    (more,) = said(HOT, 200.0)
    assert more.code is ReasonCode.HOT_INSTANCE, "more instances are tried first"


def test_of_a_small_node_all_is_given() -> None:
    demand = OperatorDemand("t", "count", 4, (10.0, 60.0, 10.0, 10.0))
    (hot,) = hot_reasons(demand, HotOperator((HOT,), 70.0, 1.2), 60.0, 0.75, "")
    assert "its share is all that a node has" in hot.why
