"""Runs a scenario from start to end with a decider, which is asked for a plan in every cycle."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from barograph.engines.sim.engine import Simulator
from barograph.engines.sim.result import Result, result
from barograph.engines.sim.scenario.definition import Reassign
from barograph.model import Instance, Metrics, Outcome, Placement, Plan, Slot, Snapshot

Keep = Callable[[str], None] | None


class Decider(Protocol):
    """Asked once a cycle. ``told`` passes on the plan's outcome before the next plan is asked for.

    heeds_triggers: whether a trigger may change a topology's level while this decides.
    """

    @property
    def heeds_triggers(self) -> bool: ...

    def plan(self, now: Snapshot) -> Plan: ...

    def plan_between(self, now: Snapshot) -> Plan:
        """A level has changed since the last cycle; its topology waits for the plan. now: with that cycle's metrics."""
        ...

    def told(self, outcome: Outcome) -> None: ...


class KeepPlacement:
    """The placement the scenario starts with, for the whole run."""

    heeds_triggers = False

    def plan(self, now: Snapshot) -> Plan:
        return Plan(version=now.version)

    def plan_between(self, now: Snapshot) -> Plan:
        return self.plan(now)

    def told(self, outcome: Outcome) -> None:
        """Its plans ask for nothing."""


def run(engine: Simulator, decider: Decider, keep: Keep = None) -> Result:
    """The first plan is what the topologies are submitted with: it costs nothing. Then one plan each cycle.

    Nothing runs before the first plan, so the decider chooses the first placement freely. Instances that it does not
    place go where Spark's offers would put them.

    keep: gets each line of the trace. The trace has what was seen, decided and done in each cycle; its hash is in the
    result, so that two runs can be compared without keeping either.
    """
    scenario = engine.scenario
    trace = hashlib.sha256()
    chance = np.random.default_rng([engine.seed, 7])
    last_s = scenario.duration_s - 1e-9
    reassign_s = scenario.reassign.first_s if scenario.reassign else None
    engine.priorities.heed_triggers(decider.heeds_triggers)
    _decide(engine, decider, trace, keep)
    engine.start()
    cycle = 1
    while engine.now_s < last_s:
        next_s = min(cycle * scenario.cycle_s, scenario.duration_s)
        if scenario.reassign is not None and reassign_s is not None and reassign_s <= min(next_s, last_s):
            _advance(engine, decider, reassign_s, trace, keep)
            engine.apply(_reassigned(engine, scenario.reassign, chance))
            reassign_s += scenario.reassign.every_s
            continue
        _advance(engine, decider, next_s, trace, keep)
        _decide(engine, decider, trace, keep)
        cycle = int(engine.now_s / scenario.cycle_s + 1e-9) + 1  # cycles due during a slow change are left out
    engine.close()
    return result(engine, trace.hexdigest())


def _advance(engine: Simulator, decider: Decider, to_s: float, trace: "hashlib._Hash", keep: Keep) -> None:
    """Let time pass until to_s. When a topology's level changes meanwhile, a plan for it is made at once."""
    while engine.now_s < to_s - 1e-9:
        engine.advance(to_s - engine.now_s)
        if held := engine.priorities.held:
            seen = engine.glance()
            _carry_out(engine, decider, seen, decider.plan_between(seen), trace, keep)
            engine.priorities.release(held)


def _decide(engine: Simulator, decider: Decider, trace: "hashlib._Hash", keep: Keep) -> None:
    seen = engine.observe()
    if engine.started:
        engine.totals.saw(seen)
    plan = decider.plan(seen if engine.started else submitted(seen))
    _carry_out(engine, decider, seen, plan, trace, keep)


def _carry_out(
    engine: Simulator, decider: Decider, seen: Snapshot, plan: Plan, trace: "hashlib._Hash", keep: Keep
) -> None:
    starts = [part.start for part in engine.layout.operators]
    outcome = engine.apply(plan)
    decider.told(outcome)
    engine.totals.decisions += 1
    line = json.dumps(_line(seen, starts, outcome), separators=(",", ":"))
    trace.update(line.encode() + b"\n")
    if keep is not None:
        keep(line)


def submitted(seen: Snapshot) -> Snapshot:
    """The cluster before the topologies run: no instance has a place, and nothing was measured."""
    return replace(seen, placement=Placement(), metrics=Metrics(()), traffic=(), node_metrics=(), topology_metrics=())


def _line(seen: Snapshot, starts: list[int], outcome: Outcome) -> dict[str, object]:
    """starts: where each operator's instances begin in the metrics."""
    columns = [seen.metrics.columns[name] for name in ("arrived", "executed", "emitted", "pending", "cpu_s")]
    sums = np.stack([np.add.reduceat(column, starts) for column in columns], axis=1).tolist()
    named = [(t.name, o) for t in seen.topologies for o in t.operators]
    operators = {f"{t}/{o.name}": [o.parallelism, *s] for (t, o), s in zip(named, sums, strict=True)}
    return {
        "at_s": seen.at_s,
        "version": seen.version,
        "operators": operators,
        "ended": [
            [t.topology, t.epoch, t.completed_rows, t.late_rows, t.latency_due.mean if t.latency_due else None]
            for t in seen.topology_metrics
        ],
        "done": list(outcome.done),
        "refused": [f"{r.what}: {r.reason}" for r in outcome.refused],
        "order_to_commit_s": outcome.order_to_commit_s,
    }


def _reassigned(engine: Simulator, wish: Reassign, chance: np.random.Generator) -> Plan:
    """So many instances, drawn at random, each to another worker with a free seat, drawn at random."""
    placement = engine.layout.placement
    free = Counter({slot: worker.seats for slot, worker in engine.workers.items()})
    free.subtract(placement.slots.values())
    instances = sorted(placement)
    moves: dict[Instance, Slot] = {}
    for number in chance.permutation(len(instances)):
        if len(moves) == wish.instances:
            break
        instance = instances[number]
        targets = sorted(s for s, seats in free.items() if seats > 0 and s != placement[instance])
        if targets:
            moves[instance] = targets[chance.integers(len(targets))]
            free[moves[instance]] -= 1
    return Plan(Placement(moves), mode=wish.mode, delay_s=wish.delay_s)
