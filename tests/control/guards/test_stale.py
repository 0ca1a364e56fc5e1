"""While figures are too old to decide by, their topology is left as it is, for every policy; others go on."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cycles import remembered

from barograph.control.guards import Act, Guards, OldFigures, guard
from barograph.control.guards.acts import Distress
from barograph.control.loop import Loop, Settings
from barograph.control.node_pool import NodeOrders, Upkeep
from barograph.control.quiet_moments import Quiet
from barograph.engines.port import CONTROLLER
from barograph.engines.sim import Simulator, parse_scenario
from barograph.history import Recorder, cycles
from barograph.model import Cycle, Metrics, NodeMetrics, Outcome, Plan, Reason, ReasonCode, Snapshot
from barograph.policy.definition import with_options
from barograph.policy.registry import POLICIES, named

SCENARIO = """
name = "two"
title = "two topologies"
duration_s = 900
epoch_s = 20
cycle_s = 2
nodes = [{name = "n", count = 4, cpu_pct = 200, slots = 1, seats = 12, memory_mb = 8192}]
"""
TOPOLOGY = """
[[topologies]]
name = "%s"
operators = [
  {name = "s", parallelism = 1, load = "%s", cost_ms = 0.2},
  {name = "k", parallelism = 2, cost_ms = 1, cpu_pct = 30, memory_mb = 100},
]
edges = [{source = "s", target = "k"}]
"""


class Muted:
    """The simulator behind the port. Topologies in ``silent`` report nothing: their totals stand still and get older,
    and all that was counted meanwhile comes with the first report after it."""

    def __init__(self, load: str = "constant 300", other: str = "constant 300") -> None:
        text = SCENARIO + TOPOLOGY % ("a", load) + TOPOLOGY % ("b", other)
        self.sim = Simulator(parse_scenario(text, "two"), seed=1)
        self.sim.start()
        self.step_s = 2.0
        self.silent: set[str] = set()
        self.missing: dict[str, tuple[float, dict[str, Any]]] = {}
        self.plans: list[Plan] = []

    def observe(self, observer: str = CONTROLLER) -> Snapshot:  # noqa: ARG002  # one observer
        self.sim.advance(self.step_s)
        seen = self.sim.observe()
        columns = {name: column.copy() for name, column in seen.metrics.columns.items()}
        age_s = np.zeros(len(seen.metrics.instances))
        for topology in ("a", "b"):
            mine = [k for k, i in enumerate(seen.metrics.instances) if i.topology == topology]
            since_s, held = self.missing.get(topology, (seen.at_s - seen.cycle_s, {}))
            whole = {n: columns[n][mine] + (held[n] if n in held and n != "pending" else 0.0) for n in columns}
            for name, column in columns.items():
                column[mine] = 0.0 if topology in self.silent and name != "pending" else whole[name]
            if topology in self.silent:
                self.missing[topology] = (since_s, whole)
                age_s[mine] = seen.at_s - since_s
            else:
                self.missing.pop(topology, None)
        return replace(seen, metrics=Metrics(seen.metrics.instances, columns, age_s))

    def apply(self, plan: Plan) -> Outcome:
        self.plans.append(plan)
        return self.sim.apply(plan)


def loop_of(engine: Muted, policy: str = "adaptive", **more: Any) -> Loop:
    quick = replace(Guards(), cooldown_s=0.0, return_s=0.0, settle_cycles=1)
    settings = Settings(named(policy), 2.0, guards=quick, quiet=Quiet(known_cycles=0), upkeep=Upkeep(None))
    return Loop(engine, replace(settings, **more))


def of(plan: Plan, topology: str) -> list[object]:
    """All that a plan changes or sets of a topology."""
    found: list[object] = [r for r in plan.rescales if r.topology == topology]
    found += [i for i in (*plan.placement.slots, *plan.shares_pct, *plan.limits_pct) if i.topology == topology]
    return found + [c for c in plan.cuts if c == topology]


def stale(cycle: Cycle) -> set[str]:
    return {r.about for r in cycle.plan.reasons if r.code is ReasonCode.FIGURES_STALE}


def test_limits_do_not_fall_while_nothing_is_heard_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """Seen on Spark: limits fell from 50 % to 15 % in the first blind cycle."""
    engine = Muted(other="ramp 0s=300 200s=1500")
    loop = loop_of(engine)
    for _ in range(15):
        loop.turn()
    engine.silent = {"a"}
    with caplog.at_level(logging.INFO, "barograph.control.decision_log"):
        turns = [loop.turn() for _ in range(6)]
    assert [stale(c) for c in turns] == [{"a"}] * 6
    assert all(not of(c.plan, "a") and of(c.plan, "b") for c in turns), "only what is stale is held"
    given = [sum(pct for i, pct in c.plan.shares_pct.items() if i.topology == "b") for c in turns]
    assert given[-1] > given[0], "the other's load rises, and so do its shares"
    assert "held back: a by figures-stale" in caplog.text
    reason = next(r for r in turns[0].plan.reasons if r.code is ReasonCode.FIGURES_STALE)
    assert reason.numbers == {"age_s": 2.0, "stale_s": 3.0, "covers_s": 0.0, "cycle_s": 2.0}, "blind from the first"


def test_what_comes_after_a_silence_is_not_taken_for_a_peak() -> None:
    engine = Muted()
    loop = loop_of(engine)
    for _ in range(15):
        before = loop.turn()
    engine.silent = {"a"}
    for _ in range(10):
        loop.turn()
    engine.silent = set()
    first, second = loop.turn(), loop.turn()
    assert stale(first) == {"a"}, "its first report has the rows of 22 s in it"
    assert not stale(second) and of(second.plan, "a")
    for operator in ("s", "k"):
        then, now = before.demand.of("a", operator), second.demand.of("a", operator)
        assert then is not None and now is not None
        assert now.parallelism == then.parallelism
        assert sum(now.shares_pct) == pytest.approx(sum(then.shares_pct), rel=0.25)


@pytest.mark.parametrize("policy", [p.name for p in POLICIES.values() if p.learns is None])
def test_no_policy_decides_by_stale_figures(policy: str) -> None:
    engine = Muted()
    loop = loop_of(engine, policy)
    for _ in range(8):
        loop.turn()
    engine.silent = {"a"}
    turns = [loop.turn() for _ in range(4)]
    assert not any(of(c.plan, "a") for c in turns)
    seen = [o for c in turns for o in c.demand.operators if o.topology == "a"]
    assert len(seen) >= len(turns) and all(o.wanted == o.parallelism for o in seen)


def test_an_instance_without_a_seat_is_placed_although_its_figures_are_old() -> None:
    engine = Muted()
    loop = loop_of(engine)
    for _ in range(8):
        loop.turn()
    engine.silent = {"a"}
    for _ in range(3):
        loop.turn()
    node = next(s.node for i, s in engine.sim.running().slots.items() if i.topology == "a")
    engine.sim.lose(node)
    engine.step_s = 0.1  # before the engine itself restarts it
    found = loop.turn()
    placed = [i for i in found.plan.placement.slots if i.topology == "a"]
    assert placed and stale(found) == {"a"}
    assert not [i for i in found.plan.limits_pct if i.topology == "a"], "its limits are held all the same"


def test_no_node_is_released_by_stale_figures() -> None:
    def released(silent: set[str]) -> list[NodeOrders]:
        asked: list[NodeOrders] = []
        engine = Muted("constant 10", "constant 10")
        engine.silent = silent
        policy = with_options(named("adaptive"), {"known_s": 0.0})
        settings = Settings(policy, 2.0, quiet=Quiet(known_cycles=0), upkeep=Upkeep(release_after_s=10.0, spare=0))

        def ask(orders: NodeOrders) -> Outcome:
            asked.append(orders)
            return Outcome()

        loop = Loop(engine, settings, nodes=ask)
        for _ in range(25):
            loop.turn()
        return [o for o in asked if o.release]

    assert released(set()), "two small topologies leave nodes idle"
    assert not released({"a"})


def test_a_change_is_judged_when_its_figures_are_known_again() -> None:
    engine = Muted()
    loop = loop_of(engine)
    turns = [loop.turn() for _ in range(40)]
    now = turns[-1].snapshot
    moved = next(i for i in now.placement.slots if i.topology == "a")
    elsewhere = next(w.slot for w in now.workers if w.slot != now.placement[moved])
    before = replace(now.placement, slots={**now.placement.slots, moved: elsewhere})
    act = Act(now.at_s - 30, "a", 1, 0, 1, before.of_topology("a"), distress=Distress(0.0, 2.0), load_rows_s=300.0)
    worse = tuple(replace(m, backlog_rows=9e9) if m.topology == "a" else m for m in now.topology_metrics)
    late = replace(turns[-1], snapshot=replace(now, topology_metrics=worse), plan=Plan(version=now.version))
    guards = replace(Guards(), probation_s=20.0)
    history = [remembered(replace(now, at_s=now.at_s - 15))]
    assert ReasonCode.ROLLED_BACK in {r.code for r in guard(guards, [act], history, late).plan.reasons}
    held = OldFigures(late.snapshot, {"a": Reason("a", ReasonCode.FIGURES_STALE, "old")}).held_back(
        history, late, False
    )
    assert ReasonCode.ROLLED_BACK not in {r.code for r in guard(guards, [act], history, held).plan.reasons}
    then = replace(held, snapshot=replace(held.snapshot, at_s=now.at_s - 1))
    found = guard(guards, [act], [*history, then], late)
    assert ReasonCode.ROLLED_BACK in {r.code for r in found.plan.reasons}, "the cycle in between could not judge it"


def test_a_controller_that_resumes_knows_which_figures_were_old(tmp_path: Path) -> None:
    engine = Muted()
    loop = loop_of(engine)
    recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: 0.0)
    loop._recorder = recorder
    for _ in range(6):
        loop.turn()
    engine.silent = {"a"}
    for _ in range(4):
        last = loop.turn()
    recorder.close()
    recorded = list(cycles(tmp_path))
    assert recorded[-1].snapshot.metrics.of_operator("a", "s").arrived == 0, "a history has what was seen"
    again = loop_of(engine)
    again.recall(tmp_path)
    assert again.history[-1].snapshot.metrics == last.snapshot.metrics
    assert again.history[-1].snapshot.metrics.of_operator("a", "s").arrived == pytest.approx(600, rel=0.05)
    engine.silent = set()
    assert stale(again.turn()) == {"a"}


def test_the_figures_of_a_silent_node_are_the_last_known_ones() -> None:
    now = Muted().observe()
    fresh = replace(now, node_metrics=(NodeMetrics("n-1", 1.5, 10.0), NodeMetrics("n-2", 1.0, 10.0)))
    mute = replace(
        fresh, at_s=now.at_s + 4, cycle_s=4.0,
        node_metrics=(NodeMetrics("n-1", 0.0, 0.0, age_s=4.5), NodeMetrics("n-2", 1.2, 10.0)),
    )  # fmt: skip
    found = OldFigures.of([remembered(fresh)], mute, 3.0)
    assert found.believed.node_metrics == (NodeMetrics("n-1", 3.0, 10.0, age_s=4.5), NodeMetrics("n-2", 1.2, 10.0))
    assert OldFigures.of([remembered(fresh)], mute, None).believed is mute


@pytest.mark.parametrize(("told", "age_s"), [(True, 4.5), (False, 4.25)])
def test_last_known_sums_have_the_age_of_what_was_seen(told: bool, age_s: float) -> None:
    """4.25 s: they were 0.25 s old four seconds ago, and nothing was told since."""
    now = Muted().observe()

    def aged(seen: Snapshot, age_s: float) -> Snapshot:
        return replace(
            seen,
            metrics=replace(seen.metrics, age_s=np.full(len(seen.metrics.instances), age_s)),
            traffic=tuple(replace(e, age_s=age_s) for e in seen.traffic),
            topology_metrics=tuple(replace(m, age_s=age_s) for m in seen.topology_metrics),
        )

    before, mute = aged(now, 0.25), aged(replace(now, at_s=now.at_s + 4, cycle_s=4.0), 4.5)
    if not told:
        mute = replace(mute, traffic=(), topology_metrics=())
    found = OldFigures.of([remembered(before)], mute, 3.0).believed
    assert [m.age_s for m in found.topology_metrics] == [age_s] * 2
    assert [e.age_s for e in found.traffic] == [age_s] * len(now.traffic) != []
    assert [e.total for e in found.traffic] == pytest.approx([2 * e.total for e in now.traffic])
