"""The loop: each cycle observe -> decide -> guard -> apply -> record, through any engine with the port's two methods.

``controller.decide`` decides, guards hold back, the engine checks the plan against the cluster as it is now and refuses
it whole if it cannot be; this only brings them together and keeps time. It holds nothing that the history does not: one
that was killed goes on from what was recorded, and topologies go on with the last plan meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil
from pathlib import Path

from barograph.controller import decide, decide_between
from barograph.engines.port import Engine
from barograph.epochs import Quiet, Recovery, epoch_length, in_quiet_moments
from barograph.guards import Act, Guards, acts_of, guard, remember
from barograph.guards.acts import HOUR_S, NEW_LEVELS
from barograph.history.read import changes_since, last_cycles
from barograph.history.write import Recorder
from barograph.model import BadInput, Cycle, Metrics, Outcome, Plan, Reason, Refusal, Snapshot
from barograph.model.checks import require_positive
from barograph.nodes import NodeOrders, Upkeep, awake, fetch_time_s, keep_nodes
from barograph.policies import Policy

MEMORY_CYCLES = 120  # more than any stage looks back
# How long each step may take before who watches takes it for hanging. An engine's answers have limits of their own.
OBSERVE_S, DECIDE_S, APPLY_S, WAKE_S = 45.0, 60.0, 360.0, 10.0
LEARNED = 5  # so many of the last changes tell how long one takes


class Mode(StrEnum):
    """act: plans are applied. advise: all is computed and recorded, nothing is applied."""

    ACT = "act"
    ADVISE = "advise"


@dataclass(frozen=True)
class Settings:
    """How a loop runs. enforce: whether shares are written as limits."""

    policy: Policy
    cycle_s: float = 10.0
    mode: Mode = Mode.ACT
    enforce: bool = True
    guards: Guards = field(default_factory=Guards)
    quiet: Quiet = field(default_factory=Quiet)
    recovery: Recovery = field(default_factory=Recovery)
    upkeep: Upkeep = field(default_factory=Upkeep)

    def __post_init__(self) -> None:
        require_positive("the cycle", self.cycle_s)

    @property
    def memory_cycles(self) -> int:
        """How many cycles are looked back to."""
        return max(MEMORY_CYCLES, int((self.upkeep.release_after_s or 0.0) / self.cycle_s) + 2)


class Loop:
    """One controller. pace: told how long each topology's epochs should be, when that changes; None where nobody asks.

    nodes: told which nodes to release and to fetch, says what became of it; None where nodes only come and go.
    beat: called with what it is about to do and how long that may take, so that who watches knows work from hanging.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        recorder: Recorder | None = None,
        pace: Callable[[Mapping[str, float]], None] | None = None,
        beat: Callable[[str, float], None] = lambda _doing, _patience_s: None,
        nodes: Callable[[NodeOrders], Sequence[str]] | None = None,
    ) -> None:
        self._engine, self.settings, self._recorder = engine, settings, recorder
        self._pace, self._beat, self._nodes = pace, beat, nodes
        self.history: list[Cycle] = []
        self.acts: tuple[Act, ...] = ()
        self.epochs_s: dict[str, float] = {}
        self._levels: dict[str, int] = {}  # by which the last plan was made that holds

    def recall(self, folder: Path, wall_ms: int) -> None:
        """Go on from a recorded history. wall_ms: now."""
        try:
            # One made between two cycles saw nothing of its own.
            recent = last_cycles(folder, self.settings.memory_cycles)
            self.history = [c for c in recent if c.snapshot.metrics.instances]
        except BadInput:  # there is none yet
            return
        for cycle in changes_since(folder, wall_ms - round(HOUR_S * 1000)):
            self.acts = (*self.acts, *acts_of(cycle))

    def turn(self) -> Cycle:
        """One cycle."""
        self._beat("observing", OBSERVE_S)
        now = self._engine.observe()
        if self.history and self.history[-1].snapshot.at_s >= now.at_s:
            # The engine was started anew: its clock began again, and what was is no guide to what is.
            self.history, self.acts = [], ()
        self._beat("deciding", DECIDE_S)
        policy = replace(self.settings.policy, horizon_cycles=horizon_cycles(self.settings, self.history))
        cycle = self._held_back(decide(policy, self.history, now))
        orders = self._node_orders(policy, cycle)
        cycle = self._with_outcome(_with_reasons(self._with_epochs(cycle), orders.reasons))
        if self.settings.mode is Mode.ACT:
            cycle = self._with_nodes(cycle, orders)
        self._beat("recording", DECIDE_S)
        self._remember(cycle)
        if self._recorder is not None:
            self._recorder.record(cycle, policy.horizon_cycles)
        return cycle

    def turn_between(self, now: Snapshot) -> Cycle | None:
        """Priorities have changed: decide anew at once, and not at the next cycle. None where nothing is new.

        now: the world as it is, with the metrics of the last cycle. So no cycle is cut short, and no forecast sees one.
        """
        if not self.history or self.history[-1].snapshot.at_s >= now.at_s or _levels(now) == self._levels:
            return None
        self._beat("deciding", DECIDE_S)
        earlier, last = self.history[:-1], self.history[-1]
        found = decide_between(self.settings.policy, self.history, now)
        cycle = self._with_outcome(self._held_back(found, earlier))
        self.acts = remember(self.acts, cycle)
        self.history = [*earlier, cycle]
        if self._recorder is not None:
            self._beat("recording", DECIDE_S)
            between_s = max(1e-3, now.at_s - last.snapshot.at_s)
            seen = replace(
                now, cycle_s=between_s, metrics=Metrics(()), traffic=(), node_metrics=(), topology_metrics=()
            )
            self._recorder.record(replace(cycle, snapshot=seen), self.settings.policy.horizon_cycles)
        return cycle

    def run(
        self,
        clock: Callable[[], float],
        wait: Callable[[float], bool],
        say: Callable[[str], None] = lambda _: None,
        gone_s: float | None = None,
    ) -> None:
        """Turn after turn, on time, until ``wait`` says to stop or the engine is out of reach for ``gone_s``."""
        due_s = seen_s = clock()
        while True:
            try:
                self.turn()
                seen_s = clock()
            except (ConnectionError, TimeoutError) as error:
                say(f"the engine is out of reach: {error}")
                if gone_s is not None and clock() - seen_s >= gone_s:
                    return
            except BadInput as error:
                say(f"a cycle was left out: {error}")
            # A cycle that a slow change ran over is left out, not made up for.
            cycle_s = self.settings.cycle_s
            due_s += cycle_s * max(1, -int(-(clock() - due_s) // cycle_s))
            self._beat("waiting", cycle_s + WAKE_S)
            if wait(max(0.0, due_s - clock())):
                return

    def _held_back(self, cycle: Cycle, history: Sequence[Cycle] | None = None) -> Cycle:
        history = self.history if history is None else history
        if not self.settings.enforce:
            cycle = replace(cycle, plan=replace(cycle.plan, limits_pct={}))
        levels = _levels(cycle.snapshot)
        if any(self._levels.get(name, level) != level for name, level in levels.items()):
            # Sources are held back until the plan for the new levels holds: only the budget and the freeze may stop it.
            at_once = replace(self.settings.guards, cooldown_s=0.0, return_s=0.0, penance_s=0.0)
            cycle = guard(at_once, self.acts, history, cycle)
            why = Reason("priorities", NEW_LEVELS, {name: float(level) for name, level in levels.items()})
            return replace(cycle, plan=replace(cycle.plan, reasons=(*cycle.plan.reasons, why)))
        guarded = guard(self.settings.guards, self.acts, history, cycle)
        return in_quiet_moments(self.settings.quiet, history, guarded)

    def _with_outcome(self, cycle: Cycle) -> Cycle:
        if self.settings.mode is Mode.ACT:
            cycle = replace(cycle, outcome=self._applied(cycle.plan))
            if cycle.outcome is not None and not cycle.outcome.ok:
                return cycle
        self._levels = _levels(cycle.snapshot)
        return cycle

    def _with_epochs(self, cycle: Cycle) -> Cycle:
        """How long epochs should be, told when it changes; and recorded, with the reason."""
        reasons = []
        lengths = {}
        for topology in cycle.snapshot.topologies:
            present_s = self.epochs_s.get(topology.name)
            found = epoch_length(cycle.snapshot, topology.name, self.settings.recovery, present_s)
            lengths[topology.name] = found.seconds
            if found.seconds != present_s:
                reasons.append(found.reason)
        if reasons and self.settings.mode is Mode.ACT and self._pace is not None and not self.settings.guards.frozen:
            self._pace(lengths)
        self.epochs_s = lengths
        return _with_reasons(cycle, reasons)

    def _node_orders(self, policy: Policy, cycle: Cycle) -> NodeOrders:
        """What to do about nodes, from what will be needed when a node that is fetched now is there."""
        upkeep, now = self.settings.upkeep, cycle.snapshot
        if self._nodes is None or self.settings.guards.frozen:
            return NodeOrders()
        ahead = cycle.demand
        if upkeep.release_after_s is not None:
            cycles = max(policy.horizon_cycles, ceil(fetch_time_s(upkeep, self.history) / self.settings.cycle_s))
            whole = awake(now)
            ahead = policy.scaler(self.history, whole, policy.forecaster(self.history, whole, cycles))
        return keep_nodes(upkeep, self.history, cycle, ahead)

    def _with_nodes(self, cycle: Cycle, orders: NodeOrders) -> Cycle:
        """After the plan, which a change of the cluster would make stale; who was refused one lets nobody go."""
        if not orders or self._nodes is None or cycle.outcome is None:
            return cycle
        if cycle.outcome.refused:
            orders = replace(orders, release=())
        try:
            said = self._nodes(orders) if orders else ()
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            said = [f"nobody knows what became of the nodes: {error}"]
        if cycle.outcome.refused:
            return _with_reasons(cycle, [Reason("nodes", sentence) for sentence in said])
        return replace(cycle, outcome=replace(cycle.outcome, done=(*cycle.outcome.done, *said)))

    def _applied(self, plan: Plan) -> Outcome:
        self._beat("applying", APPLY_S)
        try:
            return self._engine.apply(plan)
        except (ConnectionError, TimeoutError) as error:
            return Outcome(refused=(Refusal("the plan", f"nobody knows what became of it: {error}"),))
        except (BadInput, RuntimeError) as error:
            return Outcome(refused=(Refusal("the plan", f"the engine could not: {error}"),))

    def _remember(self, cycle: Cycle) -> None:
        self.acts = remember(self.acts, cycle)
        self.history = [*self.history[-(self.settings.memory_cycles - 1) :], cycle]


def _with_reasons(cycle: Cycle, reasons: Sequence[Reason]) -> Cycle:
    return replace(cycle, plan=replace(cycle.plan, reasons=(*cycle.plan.reasons, *reasons))) if reasons else cycle


def _levels(now: Snapshot) -> dict[str, int]:
    return {t.name: t.level for t in now.topologies}


def horizon_cycles(settings: Settings, history: Sequence[Cycle]) -> int:
    """How far ahead to forecast: what is decided now must do until it bites, which takes as long as it lately took."""
    took = [
        c.outcome.order_to_commit_s
        for c in history
        if c.outcome is not None and c.outcome.ok and c.outcome.order_to_commit_s is not None
    ][-LEARNED:]
    pause_s = max(took, default=0.0)
    return settings.policy.horizon_cycles + int(pause_s / settings.cycle_s + 0.5)
