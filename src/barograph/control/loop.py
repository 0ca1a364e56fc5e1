"""The loop: each cycle observe -> decide -> guard -> apply -> record, through any engine with the port's two methods.

``decide`` decides, guards hold back, and the engine checks the plan against the present cluster and refuses it whole if
it cannot be applied; this only calls them and keeps time. All its state is in the history: a controller that was killed
continues from what was recorded, and topologies go on with the last plan meanwhile.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil

from barograph.config import default
from barograph.control.decide import MEMORY_CYCLES, MEMORY_S, decide, decide_between
from barograph.control.decision_log import DecisionLog
from barograph.control.guards import Act, Guards, OldFigures, acts_of, guard, remember
from barograph.control.guards.acts import HOUR_S
from barograph.control.horizon import horizon_cycles
from barograph.control.node_pool import NodeOrders, Upkeep, awake, fetch_time_s, keep_nodes
from barograph.control.quiet_moments import Quiet, in_quiet_moments
from barograph.engines.epoch_length import Recovery, epoch_length
from barograph.engines.port import Engine
from barograph.history.files import parts
from barograph.history.places import HistoryPath
from barograph.history.read import changes_since, last_cycles
from barograph.history.write import Recorder
from barograph.logs import OnceOnly
from barograph.model import BadInput, Cycle, Metrics, Outcome, Plan, Reason, ReasonCode, Refusal, RefusalCode, Snapshot
from barograph.model.checks import require_positive
from barograph.policy.declared_bounds import within_bounds
from barograph.policy.definition import Policy

log = logging.getLogger(__name__)

# Timeouts of each step, after which the keeper assumes that the loop hangs. Calls to the engine have their own.
OBSERVE_S, DECIDE_S, APPLY_S, WAKE_S = 45.0, 60.0, 360.0, 10.0


class Mode(StrEnum):
    """act: plans are applied. advise: all is computed and recorded, nothing is applied."""

    ACT = "act"
    ADVISE = "advise"


@dataclass(frozen=True)
class Settings:
    """How a loop runs. enforce: whether shares are written as limits."""

    policy: Policy
    cycle_s: float
    mode: Mode = field(default_factory=lambda: Mode(default("mode")))
    enforce: bool = default("enforce") != "off"
    guards: Guards = field(default_factory=Guards)
    quiet: Quiet = field(default_factory=Quiet)
    recovery: Recovery = field(default_factory=Recovery)
    upkeep: Upkeep = field(kw_only=True)

    def __post_init__(self) -> None:
        require_positive("the cycle", self.cycle_s)

    @property
    def memory_cycles(self) -> int:
        """How many cycles of history are kept."""
        return max(MEMORY_CYCLES, int(max(MEMORY_S, self.upkeep.release_after_s or 0.0) / self.cycle_s) + 2)


class Loop:
    """One controller. pace: called with the epoch length of a topology when it changes; None: none is set.

    nodes: called with the nodes to release and to fetch, returns what came of it; None: nodes are not managed.
    heartbeat: called with what the loop is about to do and how long that may take, so that a keeper can tell work from
    hanging. wall: the time of day, for periods in which nothing is changed.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        recorder: Recorder | None = None,
        pace: Callable[[Mapping[str, float]], None] | None = None,
        heartbeat: Callable[[str, float], None] = lambda _doing, _patience_s: None,
        nodes: Callable[[NodeOrders], Outcome] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._engine, self.settings, self._recorder = engine, settings, recorder
        self._pace, self._heartbeat, self._nodes, self._wall = pace, heartbeat, nodes, wall
        self.history: list[Cycle] = []
        self.acts: tuple[Act, ...] = ()
        self.epochs_s: dict[str, float] = {}
        self._decisions, self._warnings = DecisionLog(), OnceOnly(log)
        self._levels: dict[str, int] = {}  # for which the last applied plan was made
        self._last: Snapshot | None = None  # the last one of what is remembered

    def recall(self, folder: HistoryPath) -> None:
        """Continue from a recorded history, if there is one. Raises BadInput where it cannot be read.

        Only what was recorded of the last application is recalled; if another one runs now, ``turn`` forgets it.
        """
        recent = last_cycles(folder, self.settings.memory_cycles) if parts(folder) else []
        if not recent:
            return
        last = recent[-1].snapshot.application
        recent = [c for c in recent if c.snapshot.application == last]
        for c in recent:
            if c.snapshot.metrics.instances:  # a decision between two cycles has no metrics of its own
                self.history.append(replace(c, snapshot=self._old_figures(self.history, c.snapshot).believed))
        self._last = recent[-1].snapshot  # acts are recalled also where no cycle is
        self._decisions.recall(recent)
        for cycle in changes_since(folder, last, recent[-1].snapshot.at_s - HOUR_S):
            self.acts = (*self.acts, *acts_of(cycle))

    def turn(self) -> Cycle:
        """One cycle."""
        self._heartbeat("observing", OBSERVE_S)
        seen = self._engine.observe()
        if self._last is not None and not _continues(self._last, seen):
            # Its clock began again, or another application runs: earlier cycles and acts say nothing about it.
            self.history, self.acts, self._levels, self.epochs_s = [], (), {}, {}
            self._last, self._decisions = None, DecisionLog()
        self._heartbeat("deciding", DECIDE_S)
        horizon = horizon_cycles(self.settings.policy, self.settings.cycle_s, self.history)
        policy = replace(self.settings.policy, horizon_cycles=horizon)
        old = self._old_figures(self.history, seen)
        policy = old.holding(policy)
        cycle = self._held_back(decide(policy, self.history, old.believed), self.history, old)
        orders = self._node_orders(policy, cycle, old)
        cycle = self._with_outcome(_with_reasons(self._with_epochs(cycle, old), orders.reasons))
        if self.settings.mode is Mode.ACT:
            cycle = self._with_nodes(cycle, orders)
        self._heartbeat("recording", DECIDE_S)
        self._remember(self.history[-(self.settings.memory_cycles - 1) :], cycle)
        self._decisions.log(cycle, orders)
        if self._recorder is not None:
            self._recorder.record(replace(cycle, snapshot=seen), policy.horizon_cycles)
        return cycle

    def _old_figures(self, history: Sequence[Cycle], seen: Snapshot) -> OldFigures:
        return OldFigures.of(history, seen, self.settings.guards.stale_s)

    def turn_between(self, now: Snapshot) -> Cycle | None:
        """Priorities have changed: decide again at once, not at the next cycle. None where no level has changed.

        now: the cluster as it is, with the metrics of the last cycle, so that no forecast sees a shortened cycle.
        """
        if not self.history or self._last is None or not _continues(self._last, now) or _levels(now) == self._levels:
            return None
        self._heartbeat("deciding", DECIDE_S)
        earlier, last = self.history[:-1], self.history[-1]
        old = self._old_figures(earlier, now)
        found = decide_between(old.holding(self.settings.policy), self.history, old.believed)
        cycle = self._with_outcome(self._held_back(found, earlier, old))
        self._remember(earlier, cycle)
        self._decisions.log(cycle, NodeOrders())
        if self._recorder is not None:
            self._heartbeat("recording", DECIDE_S)
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
        gone_s: float | None = None,
    ) -> None:
        """Run cycle after cycle, on time, until ``wait`` says to stop or the engine is unreachable for ``gone_s``."""
        due_s = seen_s = clock()
        while True:
            try:
                self.turn()
                seen_s = clock()
                self._warnings.over("a cycle")
            except (ConnectionError, TimeoutError) as error:
                self._warnings.warn("a cycle", f"the engine cannot be reached: {error}; the next cycle tries again")
                if gone_s is not None and clock() - seen_s >= gone_s:
                    return
            except (BadInput, RuntimeError) as error:  # RuntimeError: the engine answers that it failed
                self._warnings.warn("a cycle", f"a cycle was left out: {error}; the next cycle decides anew")
            # Cycles that were due during a slow change are left out, not made up for.
            cycle_s = self.settings.cycle_s
            due_s += cycle_s * max(1, -int(-(clock() - due_s) // cycle_s))
            self._heartbeat("waiting", cycle_s + WAKE_S)
            if wait(max(0.0, due_s - clock())):
                return

    def _held_back(self, cycle: Cycle, history: Sequence[Cycle], old: OldFigures) -> Cycle:
        if not self.settings.enforce:
            cycle = replace(cycle, plan=replace(cycle.plan, limits_pct={}))
        levels = _levels(cycle.snapshot)
        new_levels = any(self._levels.get(name, level) != level for name, level in levels.items())
        cycle = old.held_back(history, cycle, new_levels)
        if new_levels:
            # Sources are paused until the plan for the new levels is applied: only the budget and a freeze may stop it.
            at_once = replace(self.settings.guards, cooldown_s=0.0, return_s=0.0, penance_s=0.0, after_loss_s=0.0)
            cycle = guard(at_once, self.acts, history, cycle, self._frozen())
            why = "priorities have changed: changes are made at once, and not judged by the latency before them"
            numbers = {name: float(level) for name, level in levels.items()}
            return _with_reasons(cycle, [Reason("priorities", ReasonCode.NEW_LEVELS, why, numbers)])
        guarded = guard(self.settings.guards, self.acts, history, cycle, self._frozen())
        return in_quiet_moments(self.settings.quiet, history, guarded)

    def _frozen(self) -> Reason | None:
        return self.settings.guards.frozen_at(self._wall())

    def _with_outcome(self, cycle: Cycle) -> Cycle:
        if self.settings.mode is Mode.ACT:
            cycle = replace(cycle, outcome=self._applied(cycle.plan))
            if cycle.outcome is not None and not cycle.outcome.ok:
                return cycle
        self._levels = _levels(cycle.snapshot)
        return cycle

    def _with_epochs(self, cycle: Cycle, old: OldFigures) -> Cycle:
        """Compute epoch lengths, pass on those that have changed, and record them with their reasons."""
        reasons = []
        lengths = {name: self.epochs_s[name] for name in old.held if name in self.epochs_s}
        for topology in cycle.snapshot.topologies:
            if topology.name in old.held:
                continue
            present_s = self.epochs_s.get(topology.name)
            found = epoch_length(cycle.snapshot, topology.name, self.settings.recovery, present_s)
            lengths[topology.name] = found.seconds
            if found.seconds != present_s:
                reasons.append(found.reason)
        if reasons and self.settings.mode is Mode.ACT and self._pace is not None and self._frozen() is None:
            self._pace(lengths)
        self.epochs_s = lengths
        return _with_reasons(cycle, reasons)

    def _node_orders(self, policy: Policy, cycle: Cycle, old: OldFigures) -> NodeOrders:
        """Which nodes to release and to fetch, by what will be needed when a node that is fetched now is ready.

        None is released while figures are too old: what will be needed is not known."""
        upkeep, now = self.settings.upkeep, cycle.snapshot
        if self._nodes is None or self._frozen() is not None:
            return NodeOrders()
        ahead = cycle.demand
        if upkeep.release_after_s is not None:
            cycles = max(policy.horizon_cycles, ceil(fetch_time_s(upkeep, self.history) / self.settings.cycle_s))
            whole = awake(now)
            scaler = within_bounds(policy, whole).scaler
            ahead = scaler(self.history, whole, policy.forecaster(self.history, whole, cycles))
        orders = keep_nodes(upkeep, self.history, cycle, ahead)
        return orders.without_releases() if old else orders

    def _with_nodes(self, cycle: Cycle, orders: NodeOrders) -> Cycle:
        """Carry out node orders after the plan, which they would make stale. If it was refused, no node is released."""
        if not orders or self._nodes is None or cycle.outcome is None:
            return cycle
        orders = replace(orders, release=()) if cycle.outcome.refused else orders
        try:
            found = self._nodes(orders) if orders else Outcome()
            self._warnings.over("nodes")
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            why = f"the driver did not answer, and the nodes may have been changed: {error}"
            found = orders.not_done(RefusalCode.NO_ANSWER, why)
            self._warnings.warn("nodes", f"{why}; the next cycle looks again")
        whole = replace(cycle.outcome, left_out=(*cycle.outcome.left_out, *found.left_out))
        if whole.refused:
            told = [Reason("nodes", ReasonCode.NODES_ANSWERED, sentence) for sentence in found.done]
            return _with_reasons(replace(cycle, outcome=whole), told)
        return replace(cycle, outcome=replace(whole, done=(*whole.done, *found.done)))

    def _applied(self, plan: Plan) -> Outcome:
        self._heartbeat("applying", APPLY_S)
        try:
            outcome = self._engine.apply(plan)
            self._warnings.over("apply")
            return outcome
        except (ConnectionError, TimeoutError) as error:
            why = f"the driver did not answer, and the plan may have been applied: {error}"
            self._warnings.warn("apply", f"{why}; the next cycle decides anew")
            return Outcome(refused=(Refusal("the plan", RefusalCode.NO_ANSWER, why),))
        except (BadInput, RuntimeError) as error:
            why = f"the engine failed: {error}"
            self._warnings.warn("apply", f"the plan was not applied: {why}; the next cycle decides anew")
            return Outcome(refused=(Refusal("the plan", RefusalCode.ENGINE_FAILED, why),))

    def _remember(self, earlier: Sequence[Cycle], cycle: Cycle) -> None:
        self.acts = remember(self.acts, cycle)
        self.history, self._last = [*earlier, cycle], cycle.snapshot


def _with_reasons(cycle: Cycle, reasons: Sequence[Reason]) -> Cycle:
    return replace(cycle, plan=replace(cycle.plan, reasons=(*cycle.plan.reasons, *reasons))) if reasons else cycle


def _continues(before: Snapshot, now: Snapshot) -> bool:
    """Whether both are of the same run of an engine."""
    return before.application == now.application and before.at_s < now.at_s


def _levels(now: Snapshot) -> dict[str, int]:
    return {t.name: t.level for t in now.topologies}
