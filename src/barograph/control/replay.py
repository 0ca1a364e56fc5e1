"""Runs another policy over a recorded history in the simulator: what it would have done, and with what result.

The recording is first run again under its own policy, so that what the simulator gets wrong is seen and not taken for a
difference between policies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.control.guards.acts import changed
from barograph.control.policy_in_sim import decider_of
from barograph.engines.reduced import without
from barograph.engines.sim import Calibration, Decider, Result, Scenario, Simulator, run
from barograph.history.scenario import scenario_of
from barograph.model import Cycle, Outcome, Plan, Snapshot


@dataclass(frozen=True, slots=True)
class Decision:
    """What was done to topologies in one cycle. what: each change in words. moves, rescales, shares: how many."""

    at_s: float
    what: tuple[str, ...]
    shares: int
    moves: int
    rescales: int


@dataclass(frozen=True)
class Told:
    """The recording under one policy: the result of the run, and what was done in it."""

    policy: str
    result: Result
    decisions: tuple[Decision, ...]


class _Listening:
    """A decider whose decisions are recorded."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._now: tuple[Snapshot, Plan] | None = None
        self.decisions: list[Decision] = []

    def plan(self, now: Snapshot) -> Plan:
        plan = self._decider.plan(now)
        self._now = (now, plan)
        return plan

    @property
    def heeds_triggers(self) -> bool:
        return self._decider.heeds_triggers

    def plan_between(self, now: Snapshot) -> Plan:
        plan = self._decider.plan_between(now)
        self._now = (now, plan)
        return plan

    def told(self, outcome: Outcome) -> None:
        assert self._now is not None, "told before asked"
        now, plan = self._now
        self.decisions += decisions_of(now, plan, outcome)
        self._decider.told(outcome)


def decisions_of(now: Snapshot, plan: Plan, outcome: Outcome | None) -> tuple[Decision, ...]:
    """What the plan changed, if it was applied; nothing where it only repeats shares."""
    if outcome is None or not outcome.ok:
        return ()
    plan = without(plan, now, outcome.untouched)
    moves = [f"move {i}={s}" for i, s in plan.placement.slots.items() if now.placement.get(i) not in (None, s)]
    scales = [f"scale {r.topology}/{r.operator}={r.parallelism}" for r in plan.rescales]
    cuts = [] if moves or scales else [f"cut {name}" for name in changed(plan, now) if name in plan.cuts]
    what = (*scales, *moves, *cuts)
    return (Decision(now.at_s, what, len(plan.limits_pct), len(moves), len(scales)),) if what else ()


def replay(
    cycles: Sequence[Cycle], name: str, policy: str, seed: int = 0, calibration: Calibration | None = None
) -> tuple[Scenario, Told]:
    """The recording under the policy."""
    scenario = scenario_of(cycles, name)
    listening = _Listening(decider_of(scenario, policy, seed, {}, calibration, None))
    result = run(Simulator(scenario, seed, calibration), listening)
    return scenario, Told(policy, result, tuple(listening.decisions))
