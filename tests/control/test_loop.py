"""The control loop on the simulator: it acts, advises, is refused, loses its engine, and resumes from its history."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from barograph.control.guards import Guards
from barograph.control.loop import Loop, Mode, Settings
from barograph.control.node_pool import NodeOrders, Upkeep
from barograph.control.quiet_moments import Quiet
from barograph.engines.port import CONTROLLER
from barograph.engines.sim import Simulator, parse_scenario
from barograph.engines.spark.driver.client import DriverFailed
from barograph.history import Recorder, cycles, entries, gaps
from barograph.logs import FIELDS
from barograph.model import BadInput, Metrics, Outcome, Placement, Plan, ReasonCode, Refusal, RefusalCode, Snapshot
from barograph.policy.definition import with_options
from barograph.policy.registry import named

SCENARIO = """
name = "loop"
title = "a load that rises fivefold"
duration_s = 600
epoch_s = 20
cycle_s = 5
nodes = [{name = "n", count = 3, cpu_pct = 100, slots = 1, seats = 8, memory_mb = 8192}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 1, load = "ramp 0s=100 60s=500", cost_ms = 0.2},
  {name = "k", parallelism = 2, cost_ms = 1},
  {name = "c", parallelism = 2, cost_ms = 1, stateful = true, state_mb = 5},
]
edges = [{source = "s", target = "k"}, {source = "k", target = "c", grouping = "fields"}]
"""

AT_ONCE = Quiet(known_cycles=0)  # a cut does not wait until the load is known


class Timed:
    """The simulator behind the port: time passes with each ``observe``. Something may happen before ``apply``."""

    def __init__(self, seed: int = 1) -> None:
        self.sim = Simulator(parse_scenario(SCENARIO, "loop"), seed=seed)
        self.sim.start()
        self.plans: list[Plan] = []
        self.broken: Exception | None = None
        self.accident = ""

    def observe(self, observer: str = CONTROLLER) -> Snapshot:  # noqa: ARG002  # one observer
        if self.broken is not None:
            raise self.broken
        self.sim.advance(5.0)
        return self.sim.observe()

    def apply(self, plan: Plan) -> Outcome:
        self.plans.append(plan)
        if self.accident:
            self.sim.lose(self.accident, back_s=5.0)
            self.accident = ""
        return self.sim.apply(plan)


def settings(**more: object) -> Settings:
    # Without lending: limits are then the shares themselves, which is what these tests look at. Nodes are emptied at
    # once, so that a few cycles show it.
    policy = with_options(named("adaptive"), {"lend": False, "known_s": 0.0})
    return replace(Settings(policy, cycle_s=5.0, upkeep=Upkeep(None)), **more)  # type: ignore[arg-type]  # by name


def test_shares_follow_the_load_and_every_cycle_is_recorded(tmp_path: Path) -> None:
    engine = Timed()
    recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: 0.0)
    loop = Loop(engine, settings(), recorder)
    turns = [loop.turn() for _ in range(14)]
    given = [sum(c.plan.limits_pct.values()) for c in turns]
    assert given[-1] > 1.4 * given[1], "five times the load, on top of what every instance gets at least"
    assert all(c.outcome is not None and c.outcome.ok for c in turns)
    assert list(cycles(tmp_path)) == turns
    assert [len(e.errors) for e in entries(tmp_path)][1:] == [3] * 13
    assert engine.sim.grain.unaccounted(engine.sim.now_s) == 0


def test_advice_changes_nothing(tmp_path: Path) -> None:
    engine, alone = Timed(), Timed()
    recorder = Recorder(tmp_path, "adaptive", "advise", clock=lambda: 0.0)
    loop = Loop(engine, settings(mode=Mode.ADVISE), recorder)
    turns = [loop.turn() for _ in range(6)]
    looked = [alone.observe() for _ in range(6)]
    assert engine.plans == []
    assert [c.snapshot for c in turns] == looked, "advice has changed nothing"
    assert any(c.plan.limits_pct for c in turns)
    recorder.close()
    found = list(entries(tmp_path))
    assert len(found) == 6
    assert all(e.cycle is not None and e.cycle.outcome is None and e.mode == "advise" for e in found)


def test_a_plan_from_an_older_state_is_refused_completely_and_the_next_one_is_not() -> None:
    engine = Timed()
    loop = Loop(engine, settings())
    loop.turn()
    limits, shares = dict(engine.sim.cpu.limits_pct), dict(engine.sim.cpu.shares_pct)
    engine.accident = "n-3"
    cycle = loop.turn()
    assert cycle.outcome is not None and cycle.outcome.done == ()
    (refusal,) = cycle.outcome.refused
    assert refusal.code is RefusalCode.STALE
    assert cycle.plan.limits_pct != limits and cycle.plan.shares_pct != shares
    assert (engine.sim.cpu.limits_pct, engine.sim.cpu.shares_pct) == (limits, shares)
    again = loop.turn()
    assert again.outcome is not None and again.outcome.ok


def test_a_change_that_was_refused_is_not_remembered_as_done() -> None:
    disturbed, undisturbed = Timed(), Timed()
    disturbed.accident = "n-3"
    refused, done = (Loop(engine, settings(quiet=AT_ONCE)) for engine in (disturbed, undisturbed))
    assert refused.turn().plan == done.turn().plan
    assert [(a.at_s, a.topology) for a in done.acts] == [(5.0, "t")]
    assert refused.acts == ()


def test_guards_are_in_the_loop_and_say_why() -> None:
    loop = Loop(Timed(), settings(guards=Guards(frozen=True)))
    cycle = loop.turn()
    assert not cycle.plan.limits_pct and not cycle.plan.cuts
    assert any(r.code is ReasonCode.FROZEN for r in cycle.plan.reasons)


def test_without_enforcement_no_share_is_written() -> None:
    enforcing, not_enforcing = (Loop(Timed(), settings(enforce=enforce)) for enforce in (True, False))
    assert [bool(enforcing.turn().plan.limits_pct) for _ in range(3)] == [True] * 3
    assert [bool(not_enforcing.turn().plan.limits_pct) for _ in range(3)] == [False] * 3


def test_a_loop_that_was_killed_resumes_from_its_history(tmp_path: Path) -> None:
    engine = Timed()
    first = Recorder(tmp_path, "adaptive", "act", clock=lambda: 100.0)
    loop = Loop(engine, settings(), first)
    for _ in range(6):
        loop.turn()
    first.close()
    second = Recorder(tmp_path, "adaptive", "act", clock=lambda: 130.0)
    again = Loop(engine, settings(), second)
    again.recall(tmp_path)
    assert again.history == loop.history
    assert again.acts == loop.acts
    assert again.turn().snapshot.at_s > loop.history[-1].snapshot.at_s
    assert [e.gap is not None for e in entries(tmp_path)] == [False] * 6 + [True, False]
    assert gaps(tmp_path, most_cycles=1e9) == []
    # A restarted engine is not judged by what the previous one did.
    fresh = Loop(Timed(), settings())
    fresh.recall(tmp_path)
    fresh.turn()
    assert len(fresh.history) == 1
    nothing = Loop(Timed(), settings())
    nothing.recall(tmp_path / "none")
    assert nothing.history == []


class Mute(Timed):
    """Applies plans, but its answer does not arrive."""

    def apply(self, plan: Plan) -> Outcome:
        super().apply(plan)
        raise TimeoutError("no answer")


def test_a_plan_whose_outcome_never_came_counts_as_a_change() -> None:
    loop = Loop(Mute(), settings(quiet=AT_ONCE))
    cycle = loop.turn()
    assert cycle.outcome is not None and [r.code for r in cycle.outcome.refused] == [RefusalCode.NO_ANSWER]
    assert [(a.at_s, a.topology) for a in loop.acts] == [(5.0, "t")], "it may have been applied"


class Application(Timed):
    """The engine of one driver: its name is in every snapshot, and its clock is ahead of the other's."""

    def __init__(self, name: str, ahead_s: float = 0.0) -> None:
        super().__init__()
        self.name = name
        self.last: Snapshot | None = None
        self.stopped = False
        if ahead_s:
            self.sim.advance(ahead_s)

    def observe(self, observer: str = CONTROLLER) -> Snapshot:
        if self.stopped and self.last is not None:
            self.last = replace(
                self.last, at_s=self.last.at_s + 1.0, cycle_s=1.0, topologies=(), placement=Placement(),
                metrics=Metrics(()), traffic=(), node_metrics=(), topology_metrics=(),
            )  # fmt: skip
        else:
            self.last = replace(super().observe(observer), application=self.name)
        return self.last


@pytest.mark.parametrize("stopped", [False, True], ids=["it ended at work", "its query was stopped long before"])
def test_a_second_driver_is_not_judged_by_the_first_ones_past(tmp_path: Path, stopped: bool) -> None:
    first = Recorder(tmp_path, "adaptive", "act", clock=lambda: 100.0)
    driver = Application("app-1")
    loop = Loop(driver, settings(quiet=AT_ONCE), first)
    for _ in range(3):
        loop.turn()
    assert loop.acts, "there is something to recall"
    driver.stopped = stopped
    for _ in range(loop.settings.memory_cycles if stopped else 0):
        loop.turn()
    first.close()
    # Its clock is later than the first one's last cycle, so the clock does not tell the two apart.
    engine = Application("app-2", ahead_s=200.0)
    second = Recorder(tmp_path, "adaptive", "act", clock=lambda: 130.0)
    under_second = Loop(engine, settings(quiet=AT_ONCE), second)
    under_second.recall(tmp_path)
    assert under_second.acts and bool(under_second.history) is not stopped
    assert under_second.turn_between(engine.observe()) is None, "nothing is decided by figures of the first"
    cycle = under_second.turn()
    assert [c.snapshot.application for c in under_second.history] == ["app-2"]
    assert all(act.at_s >= cycle.snapshot.at_s for act in under_second.acts)
    assert not any(r.code in (ReasonCode.COOLDOWN, ReasonCode.BUDGET_USED_UP) for r in cycle.plan.reasons)
    second.close()
    # A controller that is restarted under the second driver recalls only that one.
    restarted = Loop(engine, settings(quiet=AT_ONCE))
    restarted.recall(tmp_path)
    assert restarted.history == under_second.history
    assert restarted.acts == under_second.acts


def test_limits_of_another_application_are_not_in_force(caplog: pytest.LogCaptureFixture) -> None:
    engine = Application("app-1", ahead_s=100.0)
    loop = Loop(engine, settings(quiet=AT_ONCE))
    loop.turn()  # of a query that has not run yet
    engine.name = "app-2"
    before = loop.turn()
    engine.name = "app-3"
    with caplog.at_level("INFO", "barograph.control.decision_log"):
        after = loop.turn()
    assert after.plan.limits_pct == before.plan.limits_pct, "the load is the same"
    (line,) = [getattr(r, FIELDS) for r in caplog.records]
    assert line["limits"] == len(after.plan.limits_pct)


class Time:
    """A clock that advances only during waits. turns: after so many waits the loop is told to stop."""

    def __init__(self, turns: int) -> None:
        self.now_s, self.left, self.waits = 0.0, turns, list[float]()

    def clock(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now_s += seconds
        self.left -= 1
        return self.left <= 0


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


def test_an_engine_out_of_reach_is_waited_for_but_not_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    engine, time = Timed(), Time(3)
    loop = Loop(engine, settings())
    loop.run(time.clock, time.wait)
    assert time.waits == [5.0, 5.0, 5.0] and len(loop.history) == 3
    lost, time = ConnectionError("no driver answers"), Time(20)

    def wait(seconds: float) -> bool:
        """The engine answers at 0 s and at 10 s, not at 5 s and not from 15 s on."""
        stop = time.wait(seconds)
        engine.broken = None if time.now_s == 10.0 else lost
        return stop

    loop.run(time.clock, wait, gone_s=12.0)
    assert time.now_s == 25.0, "the first cycle that is 12 s or more after the last answer"
    said = "the engine cannot be reached: no driver answers; the next cycle tries again"
    assert warnings_of(caplog) == [said] * 2, "once for each outage"
    assert len(loop.history) == 5


def test_without_a_limit_an_engine_out_of_reach_is_waited_for_until_the_loop_is_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, time = Timed(), Time(100)
    engine.broken = TimeoutError("no answer")
    Loop(engine, settings()).run(time.clock, time.wait)
    assert time.now_s == 500.0
    assert warnings_of(caplog) == ["the engine cannot be reached: no answer; the next cycle tries again"]


def test_a_cycle_with_bad_input_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    engine, time = Timed(), Time(2)
    loop = Loop(engine, settings())
    engine.broken = BadInput("nonsense")
    loop.run(time.clock, time.wait, gone_s=0.0)
    assert warnings_of(caplog) == ["a cycle was left out: nonsense; the next cycle decides anew"], "said once only"
    assert time.waits == [5.0, 5.0] and loop.history == []
    engine.broken = None
    time = Time(1)
    loop.run(time.clock, time.wait)
    assert len(loop.history) == 1


def test_a_cycle_in_which_the_engine_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """As a driver answers that cannot look for a moment: a controller that ended by it would forget what it holds."""
    engine, time = Timed(), Time(2)
    loop = Loop(engine, settings())
    engine.broken = DriverFailed("OSError: No space left on device")
    loop.run(time.clock, time.wait, gone_s=0.0)
    said = "a cycle was left out: OSError: No space left on device; the next cycle decides anew"
    assert warnings_of(caplog) == [said]
    engine.broken, time = None, Time(1)
    loop.run(time.clock, time.wait)
    assert len(loop.history) == 1


class Failing(Timed):
    def apply(self, plan: Plan) -> Outcome:
        self.plans.append(plan)
        raise (ConnectionError if len(self.plans) > 1 else RuntimeError)("oh")


def test_an_engine_that_fails_is_a_refusal_that_is_recorded() -> None:
    engine = Failing()
    loop = Loop(engine, settings())
    first = loop.turn()
    second = loop.turn()
    assert first.outcome is not None and second.outcome is not None
    assert first.outcome.refused[0].code is RefusalCode.ENGINE_FAILED
    assert first.outcome.refused[0].reason == "the engine failed: oh"
    assert second.outcome.refused[0].code is RefusalCode.NO_ANSWER
    assert "the plan may have been applied: oh" in second.outcome.refused[0].reason


def test_epochs_are_told_when_they_change() -> None:
    told: list[Mapping[str, float]] = []
    loop = Loop(Timed(), settings(), pace=told.append)
    turns = [loop.turn() for _ in range(5)]
    changed = [t for t in turns if any("epoch_s" in r.numbers for r in t.plan.reasons)]
    assert len(told) == len(changed) >= 1
    assert all(before != after for before, after in pairwise(told))
    assert set(told[0]) == {"t"} and 5.0 <= told[0]["t"] <= 300.0
    assert any("epoch_s" in r.numbers for r in turns[0].plan.reasons)
    advising: list[Mapping[str, float]] = []
    Loop(Timed(), settings(mode=Mode.ADVISE), pace=advising.append).turn()
    assert advising == []


def test_a_cycle_takes_time() -> None:
    with pytest.raises(BadInput, match="the cycle must be above 0"):
        settings(cycle_s=0.0)


class Sleepy(Timed):
    """A cluster that can release nodes; released nodes are asleep."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep: tuple[str, ...] = ()
        self.told: list[NodeOrders] = []
        self.refuses = False

    def apply(self, plan: Plan) -> Outcome:
        return Outcome(refused=(Refusal("the plan", RefusalCode.STALE, "no"),)) if self.refuses else super().apply(plan)

    def observe(self, observer: str = CONTROLLER) -> Snapshot:  # noqa: ARG002  # one observer
        now = super().observe()
        sleeping = tuple(n for n in now.nodes if n.name in self.asleep)
        return replace(
            now,
            nodes=tuple(n for n in now.nodes if n not in sleeping),
            workers=tuple(w for w in now.workers if w.slot.node not in self.asleep),
            asleep=sleeping,
        )

    def nodes(self, orders: NodeOrders) -> Outcome:
        self.told.append(orders)
        self.asleep = tuple(n for n in (*self.asleep, *orders.release) if n not in orders.fetch)
        return Outcome((*(f"released {n}" for n in orders.release), *(f"fetched {n}" for n in orders.fetch)))


UPKEEP = Upkeep(release_after_s=10.0, spare=0)


def test_an_idle_node_is_released_and_fetched_when_the_load_has_grown() -> None:
    engine = Sleepy()
    loop = Loop(engine, settings(upkeep=UPKEEP, quiet=AT_ONCE), nodes=engine.nodes)
    turns = [loop.turn() for _ in range(16)]
    first, second = engine.told
    assert first.release == second.fetch, "five times the load needs it again, and no node goes to and fro"
    (gone,) = first.release
    said = [sentence for c in turns if c.outcome for sentence in c.outcome.done]
    assert f"released {gone}" in said and f"fetched {gone}" in said
    released, fetched = (
        next(c for c in turns if c.outcome and f"{w} {gone}" in c.outcome.done) for w in ("released", "fetched")
    )
    assert any(r.about == gone and r.code is ReasonCode.NODE_RELEASED for r in released.plan.reasons)
    assert any(r.about == gone and r.code is ReasonCode.NODE_FETCHED for r in fetched.plan.reasons)
    needs = {c.snapshot.at_s: sum(sum(o.shares_pct) for o in c.demand.operators) for c in turns}
    full_pct = fetched.snapshot.cluster_cpu_pct * UPKEEP.fill_pct / 100.0
    needed_at_s = next(at_s for at_s, pct in needs.items() if pct > full_pct)
    assert fetched.snapshot.at_s + UPKEEP.fetch_s <= needed_at_s + 1e-6, "it is there when it is needed"
    assert engine.sim.grain.unaccounted(engine.sim.now_s) == 0


HANDS_OFF: dict[str, dict[str, object]] = {
    "advice": {"mode": Mode.ADVISE},
    "freeze": {"guards": Guards(frozen=True)},
    "never": {"upkeep": Upkeep(None)},
}


def with_idle_nodes(engine: Sleepy) -> Loop:
    """A loop that has put everything on one node a moment ago, so that others are idle."""
    loop = Loop(engine, settings(quiet=AT_ONCE), nodes=engine.nodes)
    for _ in range(3):
        loop.turn()
    assert len({s.node for s in loop.history[-1].snapshot.placement.slots.values()}) == 1
    return loop


@pytest.mark.parametrize("case", HANDS_OFF)
def test_nodes_are_left_alone(case: str) -> None:
    engine = Sleepy()
    loop = with_idle_nodes(engine)
    loop.settings = replace(settings(upkeep=UPKEEP), **HANDS_OFF[case])  # type: ignore[arg-type]  # by name
    turns = [loop.turn() for _ in range(4)]
    assert engine.told == []
    said = [r.why for c in turns for r in c.plan.reasons if r.code is ReasonCode.NODE_RELEASED]
    assert bool(said) is (case == "advice"), "only advice says what it would do"


@pytest.mark.parametrize("refuses", [False, True])
def test_no_node_is_released_after_a_refused_plan(refuses: bool) -> None:
    engine = Sleepy()
    loop = with_idle_nodes(engine)
    loop.settings = settings(upkeep=UPKEEP)
    engine.refuses = refuses
    for _ in range(4):
        loop.turn()
    assert [o.release for o in engine.told if o.release] == ([] if refuses else [("n-1",)])


class Levelled(Timed):
    """The simulator, whose topology has the level that was last set."""

    level = 2

    def observe(self, observer: str = CONTROLLER) -> Snapshot:  # noqa: ARG002  # one observer
        return self._with_level(super().observe())

    def glance(self, last: Snapshot) -> Snapshot:
        """A moment later, with the metrics of the last ``observe``."""
        return self._with_level(replace(last, at_s=last.at_s + 0.5))

    def _with_level(self, now: Snapshot) -> Snapshot:
        return replace(now, topologies=tuple(replace(t, level=self.level) for t in now.topologies))


def test_new_levels_are_decided_between_two_cycles_and_held_back_by_no_cooldown(tmp_path: Path) -> None:
    engine = Levelled()
    recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: 0.0)
    loop = Loop(engine, settings(), recorder)
    turns = [loop.turn() for _ in range(3)]
    last = turns[-1].snapshot
    assert loop.turn_between(engine.glance(last)) is None, "the levels are as they were"
    engine.level = 1
    cycle = loop.turn_between(engine.glance(last))
    assert cycle is not None and cycle.outcome is not None and cycle.outcome.ok
    assert any(r.code is ReasonCode.NEW_LEVELS for r in cycle.plan.reasons)
    assert len(loop.history) == 3 and loop.history[-1] is cycle, "it replaces the cycle whose metrics it saw again"
    assert loop.turn_between(engine.glance(cycle.snapshot)) is None
    after = loop.turn()
    assert not any(r.code is ReasonCode.NEW_LEVELS for r in after.plan.reasons), "done with"
    recorded = list(cycles(tmp_path))
    assert [bool(c.snapshot.metrics.instances) for c in recorded] == [True, True, True, False, True]
    again = Loop(engine, settings())
    again.recall(tmp_path)
    assert len(again.history) == 4, "a decision without metrics of its own is not remembered as a cycle"


def test_new_levels_whose_plan_was_refused_are_new_until_one_holds() -> None:
    engine = Levelled()
    loop = Loop(engine, settings())
    first = loop.turn()
    engine.level, engine.accident = 1, "n-3"
    refused = loop.turn_between(engine.glance(first.snapshot))
    assert refused is not None and refused.outcome is not None and not refused.outcome.ok
    after = loop.turn()
    assert any(r.code is ReasonCode.NEW_LEVELS for r in after.plan.reasons)


def test_in_a_frozen_period_nothing_changes_and_afterwards_it_does() -> None:
    monday = 1_794_787_200.0  # 2026-11-16 00:00 UTC
    engine, paces, orders = Timed(), [], []  # type: ignore[var-annotated]

    def change_nodes(asked: NodeOrders) -> Outcome:
        orders.append(asked)
        return Outcome()

    hour = [9]
    guards = Guards(frozen_in="Mo-Fr 08:00-18:00 UTC", cooldown_s=0.0)
    loop = Loop(
        engine, settings(guards=guards, quiet=AT_ONCE), pace=paces.append, nodes=change_nodes,
        wall=lambda: monday + hour[0] * 3600,
    )  # fmt: skip
    for _ in range(3):
        plan = loop.turn().plan
        assert not (plan.placement or plan.rescales or plan.cuts or plan.limits_pct or plan.shares_pct)
        (reason,) = (r for r in plan.reasons if r.code is ReasonCode.FROZEN_PERIOD)
        assert reason.why == "frozen: nothing changes in the period Mo-Fr 08:00-18:00 UTC"
        assert reason.numbers["limits"] > 0, "what would have been changed"
    assert (paces, orders) == ([], [])
    hour[0] = 19
    after = loop.turn()
    assert after.plan.limits_pct and after.outcome is not None and after.outcome.ok
    assert not any(r.code is ReasonCode.FROZEN_PERIOD for r in after.plan.reasons)
