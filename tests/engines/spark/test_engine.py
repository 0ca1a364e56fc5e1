"""The engine on a plug-in without Spark: nodes that are let go, and plans that are dropped in part or fail."""

from collections.abc import Callable, Collection
from typing import Any

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on

from barograph.engines.spark.engine import FRESH_S, SparkEngine
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


def test_limits_that_nothing_enforces_do_not_refuse_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({"counting": counting("0", "0")}, enforces=("off", "enforce is off"))
    engine = engine_on(plugin, monkeypatch)
    too_much = Plan(Placement({SPLIT_1: Slot("host-1", 0)}), limits_pct={SPLIT_0: 200.0})
    outcome = engine.apply(too_much)
    assert outcome.ok and outcome.moves == 1
    assert [r.code for r in outcome.left_out] == [RefusalCode.NO_LIMITS]
    plugin.enforces = ("cooperative", "")
    assert [r.code for r in engine.apply(too_much).refused] == [RefusalCode.TOO_MUCH_CPU]


OTHER_1 = Instance("other", "split", 1)


@pytest.mark.parametrize("mode", [MigrationMode.RESTART_QUERY, MigrationMode.WORKER])
def test_a_topology_that_cannot_be_restarted_is_left_out_and_the_others_are_changed(
    monkeypatch: pytest.MonkeyPatch, mode: MigrationMode
) -> None:
    plugin = FakePlugin({"counting": counting("0", "0"), "other": counting("2", "2")}, {e: f"host-{e}" for e in "0123"})
    engine = engine_on(plugin, monkeypatch)
    engine.set_restartable("counting", FakeQuery())
    plan = Plan(
        Placement({SPLIT_1: Slot("host-1", 0), OTHER_1: Slot("host-3", 0)}),
        limits_pct={SPLIT_1: 50.0, OTHER_1: 40.0}, mode=mode,
    )  # fmt: skip
    outcome = engine.apply(plan)
    assert outcome.ok
    assert [(r.code, r.topology) for r in outcome.left_out] == [(RefusalCode.MODE_IMPOSSIBLE, "other")]
    assert outcome.moves == 1 and outcome.done[0] == "moved counting/split/1 from host-0/0 to host-1/0"
    assert not any("moved other" in sentence for sentence in outcome.done)
    assert engine.shares.limits_pct == {SPLIT_1: 50.0, OTHER_1: 40.0}, "limits need no restart"
    assert engine.orders("other") == (Placement(), {})
    assert all("other" not in o["topologies"] for o in plugin.ordered)


def test_no_worker_is_replaced_under_a_topology_that_cannot_be_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({"counting": counting("0", "0"), "other": counting("1", "1")})
    engine = engine_on(plugin, monkeypatch)
    engine.set_restartable("counting", FakeQuery())
    outcome = engine.apply(Plan(Placement({SPLIT_1: Slot("host-1", 0)}), mode=MigrationMode.WORKER))
    (refusal,) = outcome.refused
    assert (refusal.code, refusal.topology) == (RefusalCode.MODE_IMPOSSIBLE, "counting")
    assert "other there cannot be restarted here" in refusal.reason
    assert plugin.ordered == [] and outcome.done == ()


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


class FailsOnce:
    """Calls ``then`` the first time too: what could not be answered may have arrived."""

    def __init__(self, then: Callable[..., Any], fails_for: Callable[..., bool] = lambda *_: True) -> None:
        self._then, self._fails_for, self.failed = then, fails_for, False

    def __call__(self, *args: Any) -> Any:
        found = self._then(*args)
        if not self.failed and self._fails_for(*args):
            self.failed = True
            raise ConnectionResetError("no answer came")
        return found


def fail_once(engine: SparkEngine, plugin: FakePlugin, call: str, monkeypatch: pytest.MonkeyPatch) -> FailsOnce:
    """order: of what changes. confirm: of a topology that is to stay as it is."""
    if call in ("share", "rest"):
        orders = engine.shares if call == "share" else engine.gates
        found = FailsOnce(orders._send)
        monkeypatch.setattr(orders, "_send", found)
        return found
    topology = "counting" if call == "order" else "other"
    found = FailsOnce(plugin.order, lambda topologies, *_: topology in topologies)
    monkeypatch.setattr(plugin, "order", found)
    return found


@pytest.mark.parametrize("call", ["order", "confirm", "share", "rest"])
def test_orders_of_a_plan_that_could_not_be_sent_are_taken_back(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan counts as failed: what sends orders later, such as upkeep or a restart, must not carry it out."""
    plugin, clock = FakePlugin({"counting": counting("0", "0"), "other": counting("0", "0")}), Clock()
    engine = engine_on(plugin, monkeypatch, now=clock)
    rested: list[list[str]] = []
    monkeypatch.setattr(engine.gates, "_send", lambda names: rested.append(list(names)))
    before = Placement(dict.fromkeys((SPLIT_0, SPLIT_1), Slot("host-0", 0)))
    assert engine.apply(Plan(before, limits_pct={SPLIT_0: 50.0})).ok
    failing = fail_once(engine, plugin, call, monkeypatch)
    stays = {Instance("other", "split", 0): Slot("host-0", 0)}
    moved = {SPLIT_1: Slot("host-1", 0)}
    plan = Plan(
        Placement({**moved, **stays}), limits_pct={SPLIT_0: 40.0}, shares_pct={SPLIT_1: 5.0}, rests=("other",),
        heeds_triggers=False,
    )  # fmt: skip
    with pytest.raises(ConnectionResetError):
        engine.apply(plan)
    assert failing.failed
    for topology, places in (("counting", before), ("other", Placement())):
        assert engine.orders(topology) == (places, {})
    assert (engine.shares.limits_pct, engine.shares.shares_pct) == ({SPLIT_0: 50.0}, {})
    assert plugin.shares[-1] == {SPLIT_0: (50.0, 0.0)}
    assert engine.gates.resting == frozenset() and rested[-1:] in ([], [[]])
    assert engine.heeds_triggers
    ordered = [o["topologies"]["counting"] for o in plugin.ordered if "counting" in o["topologies"]]
    assert ordered[-1] == ({}, [("split", 0, "0"), ("split", 1, "0")]), "the planner has the earlier orders"
    seen = len(plugin.ordered), len(plugin.shares), len(rested)
    clock.at_s += COLD_S + FRESH_S
    engine.keep_up()
    assert (len(plugin.ordered), len(plugin.shares), len(rested)) == seen, "nothing is ordered later"
    assert engine.apply(plan).moves == 1
    assert plugin.shares[-1] == {SPLIT_0: (40.0, 0.0), SPLIT_1: (100.0, 5.0)}
    assert rested[-1] == ["other"]


def test_orders_that_could_not_be_taken_back_in_the_plugin_are_taken_back_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planner has the orders of a plan that was refused, so it must get the earlier ones before its next epoch."""
    plugin = FakePlugin({"counting": counting("0", "0")})
    engine = engine_on(plugin, monkeypatch)
    before = Placement(dict.fromkeys((SPLIT_0, SPLIT_1), Slot("host-0", 0)))
    assert engine.apply(Plan(before, limits_pct={SPLIT_0: 50.0})).ok
    order, share, is_away = plugin.order, engine.shares._send, True

    def answer(then: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            found = then(*args)
            if is_away:
                raise ConnectionResetError("no answer came")
            return found

        return call

    monkeypatch.setattr(plugin, "order", answer(order))
    monkeypatch.setattr(engine.shares, "_send", answer(share))
    with pytest.raises(ConnectionResetError):
        engine.apply(Plan(Placement({SPLIT_1: Slot("host-1", 0)}), limits_pct={SPLIT_0: 40.0}))
    assert engine.orders("counting") == (before, {})
    assert engine.shares.limits_pct == {SPLIT_0: 50.0}
    is_away = False
    plugin.ordered.clear()
    plugin.shares.clear()
    engine.keep_up()
    engine.keep_up()
    (sent,) = plugin.ordered
    assert sent["topologies"] == {"counting": ({}, [("split", 0, "0"), ("split", 1, "0")])} and sent["cut"] == []
    assert engine.apply(Plan()).done == ()
    assert plugin.shares == [{SPLIT_0: (50.0, 0.0)}], "the next plan sends what holds, whatever it asks for"


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
