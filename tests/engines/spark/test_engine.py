"""The engine on a plug-in without Spark: nodes that are let go, and plans that are dropped in part or fail."""

from collections.abc import Collection
from typing import Any

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on

from barograph.engines.spark.engine import FRESH_S
from barograph.engines.spark.executors.port import KeptNode
from barograph.engines.spark.orders.node_returns import COLD_S
from barograph.engines.spark.query_control import LEAVING_S
from barograph.model import Instance, MigrationMode, Placement, Plan, RefusalCode, Rescale, Slot


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


def test_a_hold_is_released_when_its_order_is_taken_and_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the program is interrupted meanwhile and goes on."""
    plugin = FakePlugin({"counting": counting("0", "1")})
    engine, order = engine_on(plugin, monkeypatch), plugin.order

    def interrupted(*orders: Any) -> None:
        order(*orders)
        assert plugin.holds == {"counting"}
        raise KeyboardInterrupt

    monkeypatch.setattr(plugin, "order", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.hold("counting")
    assert plugin.holds == set()


def test_no_node_is_let_go_while_a_supervised_query_is_being_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no seat at that moment, so every node looks idle."""
    plugin = FakePlugin({"counting": counting("0", "1")})
    engine = engine_on(plugin, monkeypatch)
    engine.set_restartable("counting", FakeQuery())
    ended: list[str] = []

    def end(ids: Collection[str]) -> KeptNode | None:
        ended.extend(ids)
        return None if ids == ["1"] else KeptNode(RefusalCode.NO_WORKER, "other executors")

    assert engine.let_go("host-1", end) == KeptNode(RefusalCode.NODE_IN_USE, "counting/split/1 has its seat there")
    del plugin.topologies["counting"]
    assert engine.let_go("host-1", end) == KeptNode(RefusalCode.RESTARTING, "counting is being started again")
    assert ended == []
    engine.set_restartable("counting", None)
    assert engine.let_go("host-1", end) is None
    assert ended == ["1"]


SPLIT_0, SPLIT_1 = Instance("counting", "split", 0), Instance("counting", "split", 1)


def test_limits_that_are_switched_off_are_left_out_once_and_the_rest_is_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = FakePlugin({"counting": counting("0", "0")}, enforces=("off", "enforce is off"))
    engine = engine_on(plugin, monkeypatch)
    outcome = engine.apply(Plan(Placement({SPLIT_1: Slot("host-1", 0)}), limits_pct={SPLIT_0: 50.0}))
    assert outcome.ok
    assert [(r.code, r.reason) for r in outcome.left_out] == [(RefusalCode.NO_LIMITS, "enforce is off")]
    assert engine.apply(Plan(limits_pct={SPLIT_0: 40.0})).left_out == ()
    assert not engine.shares.limits_pct
    assert outcome.moves == 1
    assert plugin.ordered[-1]["cut"] == ["counting"]
    assert ("split", 1, "1") in plugin.ordered[-1]["topologies"]["counting"][1]


def test_limits_and_shares_go_to_executors_whenever_one_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({"counting": counting("0", "0")})
    engine = engine_on(plugin, monkeypatch)
    first = engine.apply(Plan(limits_pct={SPLIT_0: 50.0, SPLIT_1: 20.0}, shares_pct={SPLIT_0: 30.0}))
    assert first.done == (f"limit of {SPLIT_0} is 50 %", f"limit of {SPLIT_1} is 20 %")
    assert plugin.shares == [{SPLIT_0: (50.0, 30.0), SPLIT_1: (20.0, 0.0)}]
    assert engine.apply(Plan(limits_pct={SPLIT_0: 50.0})).done == ()
    assert len(plugin.shares) == 1, "nothing has changed"
    engine.apply(Plan(shares_pct={SPLIT_1: 5.0}))
    assert plugin.shares[-1] == {SPLIT_0: (50.0, 30.0), SPLIT_1: (20.0, 5.0)}


def test_what_executors_say_against_their_way_is_said_once_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({"counting": counting("0", "0")}, enforces=("cooperative", "/x: Invalid argument; in 1 s"))
    engine = engine_on(plugin, monkeypatch)

    def said(limit_pct: float) -> list[tuple[str, RefusalCode, str]]:
        outcome = engine.apply(Plan(limits_pct={SPLIT_0: limit_pct}))
        assert outcome.ok and len(outcome.done) == 1, "limits are held all the same"
        return [(r.what, r.code, r.reason) for r in outcome.left_out]

    assert said(10.0) == [
        (f"control groups of executor {e} on host-{e}", RefusalCode.OTHER_WAY,
         "/x: Invalid argument; in 1 s; limits: cooperative")
        for e in ("0", "1")
    ]  # fmt: skip
    assert said(11.0) == []
    plugin.enforces = ("cooperative", "/x: Invalid argument; in 2 s")
    engine.refresh()  # a plan of mere limits looks only if nothing else has looked lately
    assert len(said(12.0)) == 2
    plugin.enforces = ("cgroup", "")
    engine.refresh()
    assert said(13.0) == []


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


def test_orders_of_a_plan_that_could_not_be_sent_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan counts as failed: what would send its orders later, such as a restart, must not carry it out."""
    plugin = FakePlugin({"counting": counting("0", "0")})
    engine = engine_on(plugin, monkeypatch)
    before = Placement(dict.fromkeys((SPLIT_0, SPLIT_1), Slot("host-0", 0)))
    assert engine.apply(Plan(before)).ok
    order, failed = plugin.order, list[object]()

    def fails_once(*orders: Any) -> dict[str, int]:
        if not failed:
            failed.append(orders)
            raise ConnectionResetError("no answer came")
        return order(*orders)

    monkeypatch.setattr(plugin, "order", fails_once)
    moved = Plan(Placement({SPLIT_1: Slot("host-1", 0)}))
    with pytest.raises(ConnectionResetError):
        engine.apply(moved)
    assert engine.orders("counting")[0] == before
    assert plugin.ordered[-1]["topologies"]["counting"] == ({}, [("split", 0, "0"), ("split", 1, "0")])
    assert engine.apply(moved).moves == 1


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


def test_executors_that_leave_are_asked_for_with_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads want to know it each second, and a call for each costs the driver CPU."""
    plugin, clock = FakePlugin({"counting": counting("0", "1")}), Clock()
    engine = engine_on(plugin, monkeypatch, now=clock)
    assert set(engine.last_reports()) == {"0", "1"}
    engine.keep_up()
    assert engine.leaving() == ()
    assert plugin.asked_for_reports == 1
    plugin.leaving = ("1",)
    clock.at_s += LEAVING_S
    assert engine.leaving() == ("1",)
    assert plugin.asked_for_reports == 2


def test_a_plan_that_ends_no_epoch_does_not_look_again_so_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller sends a plan in every cycle, right after it has looked; most of them move nothing."""
    now_s = [100.0]
    plugin = FakePlugin({"counting": counting("0", "0")})
    engine = engine_on(plugin, monkeypatch, now=lambda: now_s[0])
    version, looked = engine.observe().version, plugin.looks
    still = Plan(mode=MigrationMode.WARM_CUT, version=version)
    assert engine.apply(still).ok
    assert plugin.looks == looked
    now_s[0] += FRESH_S
    assert engine.apply(still).ok
    assert plugin.looks == looked + 1
    assert engine.apply(Plan(Placement({SPLIT_1: Slot("host-1", 0)}), mode=MigrationMode.WARM_CUT)).ok
    assert plugin.looks > looked + 1
