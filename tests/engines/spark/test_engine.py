"""The engine on a plug-in without Spark: nodes that are let go, and plans that are dropped in part or fail."""

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on

from barograph.engines.spark.orders.node_returns import COLD_S
from barograph.model import Instance, Placement, Plan, RefusalCode, Rescale, Slot


class FakeQuery:
    """Refuses to be restarted if ``problem`` says why."""

    doing = "running"

    def __init__(self, problem: str = "") -> None:
        self.problem = problem

    def repartition(self, count: int | None, between: object = None) -> str:  # noqa: ARG002
        return self.problem


def counting(*executors: str) -> FakeTopology:
    return FakeTopology((FakeOperator("split", executors), FakeOperator("count", executors, stateful=True)))


def test_a_hold_is_released_when_its_wait_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({"counting": counting("0", "1")})
    engine = engine_on(plugin, monkeypatch)
    assert engine.hold("counting")
    assert plugin.holds == {"counting"}
    plugin.fail_await_held = True
    with pytest.raises(ConnectionResetError):
        engine.hold("counting")
    assert plugin.holds == set()


def test_no_node_is_let_go_while_a_supervised_query_is_being_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no seat at that moment, so every node looks idle."""
    plugin = FakePlugin({"counting": counting("0", "1")})
    engine = engine_on(plugin, monkeypatch)
    engine.set_restartable("counting", FakeQuery())
    assert engine.let_go("host-1") == "counting/split/1 has its seat there"
    del plugin.topologies["counting"]
    assert engine.let_go("host-1") == "counting is being started again"
    assert plugin.released == []
    engine.set_restartable("counting", None)
    assert engine.let_go("host-1") == ""
    assert plugin.released == ["1"]


SPLIT_0, SPLIT_1 = Instance("counting", "split", 0), Instance("counting", "split", 1)


def test_limits_without_control_groups_are_left_out_and_the_rest_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """``barograph.start`` has no control groups, and ``adaptive`` orders limits in every plan."""
    plugin = FakePlugin({"counting": counting("0", "0")})
    engine = engine_on(plugin, monkeypatch)
    outcome = engine.apply(Plan(Placement({SPLIT_1: Slot("host-1", 0)}), limits_pct={SPLIT_0: 50.0}))
    assert outcome.ok
    assert [r.code for r in outcome.left_out] == [RefusalCode.NO_LIMITS]
    assert outcome.moves == 1
    assert plugin.ordered[-1]["cut"] == ["counting"]
    assert ("split", 1, "1") in plugin.ordered[-1]["topologies"]["counting"][1]


def test_a_topology_whose_restart_fails_goes_on_as_it_was_and_the_others_are_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = FakePlugin({"counting": counting("0", "0"), "other": counting("0", "0")})
    engine = engine_on(plugin, monkeypatch)
    engine.set_restartable("counting", FakeQuery("its epoch did not end in time"))
    engine.set_restartable("other", FakeQuery())
    before = Placement(dict.fromkeys((SPLIT_0, SPLIT_1), Slot("host-0", 0)))
    assert engine.apply(Plan(before)).ok
    moved = {SPLIT_1: Slot("host-1", 0), Instance("other", "split", 1): Slot("host-1", 0)}
    outcome = engine.apply(Plan(Placement(moved), (Rescale("counting", "count", 3),)))
    (refusal,) = outcome.refused
    assert (refusal.topology, refusal.code) == ("counting", RefusalCode.RESTART_FAILED)
    assert refusal.reason == "its epoch did not end in time"
    assert outcome.failed == {"counting"}
    assert (outcome.moves, outcome.rescales) == (1, 0), "what was taken back is not counted"
    assert outcome.done[0] == "moved other/split/1 from host-0/0 to host-1/0"
    assert not any("counting" in sentence for sentence in outcome.done)
    placement, counts = engine.orders("counting")
    assert (placement, counts) == (before, {})
    last = [o["topologies"]["counting"] for o in plugin.ordered if "counting" in o["topologies"]][-1]
    assert last == ({}, [("split", 0, "0"), ("split", 1, "0")]), "the planner has the earlier orders again"
    assert engine.orders("other")[0][Instance("other", "split", 1)] == Slot("host-1", 0)


class Clock:
    at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


@pytest.mark.parametrize("observed", [True, False])
def test_looking_orders_nothing_and_upkeep_sends_orders_that_can_be_followed_again(
    monkeypatch: pytest.MonkeyPatch, observed: bool
) -> None:
    plugin, clock = FakePlugin({"counting": counting("0", "1")}), Clock()
    engine = engine_on(plugin, monkeypatch, now=clock)
    assert engine.apply(Plan(Placement({SPLIT_1: Slot("host-0", 0)}))).ok
    engine.keep_up()
    plugin.ordered.clear()
    plugin.hosts = {"1": "host-1", "2": "host-0"}  # another executor in the slot of the lost one
    if observed:
        for look in (engine.observe, engine.refresh, engine.glance, engine.workers):
            look()
    else:
        clock.at_s += 2.0
    assert plugin.ordered == []
    engine.keep_up()
    assert plugin.ordered == [], "the new executor is not past its start"
    clock.at_s += COLD_S
    engine.keep_up()
    (order,) = plugin.ordered
    assert ("split", 1, "2") in order["topologies"]["counting"][1]
    engine.keep_up()
    assert len(plugin.ordered) == 1
