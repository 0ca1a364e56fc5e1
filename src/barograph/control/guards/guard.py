"""The guards and their options: what is held back of a plan, and the reason that is recorded for it.

Shares are never held back, except by the freeze: they take effect at once and cost nothing. A topology with an instance
that has no seat is not held back either. A topology is held back whole, because its moves, rescales and cut belong
together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from barograph.config import default
from barograph.config.written.frozen_periods import frozen_period, parse_periods
from barograph.control.guards.acts import HOUR_S, Act, changed, moves_of
from barograph.control.guards.losses import losses
from barograph.control.guards.rollback import SAME_LOAD, due, undo, unjudged, verdict
from barograph.control.guards.trim import Held, made_valid, without_rescales
from barograph.engines.epoch_length import load_rows_s
from barograph.engines.reduced import with_fitting_cpu, without
from barograph.model import Cycle, Placement, Plan, Reason, ReasonCode, Rescale, Snapshot
from barograph.model.checks import require_number, require_positive, require_whole


@dataclass(frozen=True, slots=True)
class Guards:
    """cooldown_s: for how long a topology is left alone after a change.

    cuts_per_hour, moves_per_hour, rescales_per_hour: over all topologies; None for no limit. The first plan is
    always allowed.
    settle_cycles: for how many cycles in a row an operator must want fewer instances before it gets them; it gets more
    at once. return_s: for how long an instance does not go back to where it came from.
    probation_s: how long after a change it is judged, and undone if it did not help. penance_s: for how long the
    topology is then left as it is, unless its load changes.
    after_loss_s: for how long a topology is left as it is after it has lost a worker.
    stale_s: a topology is left as it is while figures of it are older than this (``stale``); None: never.
    frozen: nothing is changed at all. frozen_in: periods of the week in which nothing is (``frozen_periods``).
    """

    cooldown_s: float = default("guards.cooldown")
    cuts_per_hour: int | None = default("guards.cuts-per-hour")
    moves_per_hour: int | None = default("guards.moves-per-hour")
    rescales_per_hour: int | None = default("guards.rescales-per-hour")
    settle_cycles: int = default("guards.settle-cycles")
    return_s: float = default("guards.return")
    probation_s: float = default("guards.probation")
    penance_s: float = default("guards.penance")
    after_loss_s: float = default("guards.after-loss")
    stale_s: float | None = default("guards.stale")
    frozen: bool = default("guards.frozen")
    frozen_in: str | None = default("guards.frozen-in")

    def __post_init__(self) -> None:
        for name in ("cooldown_s", "return_s", "probation_s", "penance_s", "after_loss_s"):
            require_number(f"guards: {name}", getattr(self, name))
        for name in ("cuts_per_hour", "moves_per_hour", "rescales_per_hour"):
            if getattr(self, name) is not None:
                require_whole(f"guards: {name}", getattr(self, name))
        require_whole("guards: settle_cycles", self.settle_cycles, 1)
        if self.stale_s is not None:
            require_positive("guards: stale_s", self.stale_s)
        parse_periods(self.frozen_in or "")

    def frozen_at(self, wall_s: float) -> Reason | None:
        """Why nothing is changed at this moment, in seconds since 1970; None if something may be."""
        if self.frozen:
            return Reason("everything", ReasonCode.FROZEN, "frozen: nothing changes until it is thawed")
        period = frozen_period(parse_periods(self.frozen_in or ""), wall_s)
        if not period:
            return None
        return Reason("everything", ReasonCode.FROZEN_PERIOD, f"frozen: nothing changes in the period {period}")


def guard(
    guards: Guards, acts: Sequence[Act], history: Sequence[Cycle], cycle: Cycle, frozen: Reason | None = None
) -> Cycle:
    """The cycle, its plan reduced to what may be done now.

    acts: of the last hour (``remember``). history: cycles, oldest first. frozen: why nothing may be changed now
    (``Guards.frozen_at``).
    """
    now, plan = cycle.snapshot, cycle.plan
    if frozen is not None:
        frozen = replace(frozen, numbers=_size(plan, now))
        return replace(cycle, plan=Plan(mode=plan.mode, version=plan.version, reasons=(*plan.reasons, frozen)))
    acts = [a for a in acts if now.at_s - HOUR_S < a.at_s < now.at_s]
    lost = losses(history, now, min([now.at_s - guards.after_loss_s, *(a.at_s for a in acts)]))
    plan, undone, notes = _with_rollbacks(guards, acts, history, cycle, lost)
    plan, settling = _settled(guards, history, plan, now, undone)
    wanted = plan
    order = _order(wanted, now, set(undone))
    held = _held(guards, acts, wanted, now, order, undone, lost)

    def build(names: Iterable[str]) -> Plan:
        return without(wanted, now, names)

    plan = build(held)
    if held or settling or undone:
        plan, held = made_valid(plan, now, held, order, build)
    done = [reason for name, reason in undone.items() if name not in held]
    reasons = (*plan.reasons, *done, *notes, *settling, *held.values())
    return replace(cycle, plan=replace(plan, reasons=reasons))


def _with_rollbacks(
    guards: Guards, acts: Sequence[Act], history: Sequence[Cycle], cycle: Cycle, lost: Mapping[str, float]
) -> tuple[Plan, dict[str, Reason], list[Reason]]:
    """Undoing an act replaces what the policy would now do to the topology. The list: acts that cannot be judged.
    lost: when topologies last lost a worker."""
    now, plan = cycle.snapshot, cycle.plan
    undone: dict[str, Reason] = {}
    notes: list[Reason] = []
    for act in due(acts, history, cycle, guards.probation_s):
        if lost.get(act.topology, float("-inf")) > act.at_s:
            why = "not judged: it has lost a worker since it was changed"
            notes.append(Reason(act.topology, ReasonCode.NOT_JUDGED, why, {"lost_s": now.at_s - lost[act.topology]}))
            continue
        reason = verdict(act, now)
        if reason is None and (note := unjudged(act, now)) is not None:
            notes.append(note)
        back = None if reason is None else undo(act, now, plan.mode)
        if reason is None or back is None:
            continue
        undone[act.topology] = reason
        rest = without(plan, now, [act.topology])
        merged = replace(
            rest,
            placement=Placement({**rest.placement.slots, **back.placement.slots}),
            rescales=(*rest.rescales, *back.rescales),
            cuts=(*rest.cuts, *back.cuts),
        )
        plan = with_fitting_cpu(plan, merged, now)
    return plan, undone, notes


def _settled(
    guards: Guards, history: Sequence[Cycle], plan: Plan, now: Snapshot, undone: Mapping[str, Reason]
) -> tuple[Plan, list[Reason]]:
    """Hysteresis: fewer instances only after they were enough for some cycles, since getting them back costs a cut."""
    early: list[Rescale] = []
    reasons = []
    for r in (r for r in plan.rescales if r.topology not in undone):
        known = {t.name: t for t in now.topologies}.get(r.topology)
        if known is None or not known.has(r.operator) or r.parallelism >= known.operator(r.operator).parallelism:
            continue
        present = known.operator(r.operator).parallelism
        wished = 1
        for earlier in reversed(history[-(guards.settle_cycles - 1) :] if guards.settle_cycles > 1 else []):
            demand = earlier.demand.of(r.topology, r.operator)
            if demand is None or demand.parallelism >= present:
                break
            wished += 1
        if wished < guards.settle_cycles:
            early.append(r)
            numbers = {"wished_cycles": float(wished), "settle_cycles": float(guards.settle_cycles)}
            why = "held back: fewer instances have been enough for too few cycles"
            reasons.append(Reason(f"{r.topology}/{r.operator}", ReasonCode.FEWER_TOO_EARLY, why, numbers))
    return without_rescales(plan, now, early), reasons


def _order(plan: Plan, now: Snapshot, undone: set[str]) -> list[str]:
    """Topologies that change, most important first: those without a seat, then rollbacks, then by level."""
    names = changed(plan, now)
    levels = {t.name: t.level for t in now.topologies}
    return sorted(names, key=lambda n: (not homeless(now, n), n not in undone, levels[n], names.index(n)))


def homeless(now: Snapshot, topology: str) -> bool:
    """Whether one of its instances has no live worker."""
    places = (now.placement.get(i) for i in now.topology(topology).instances())
    return any(slot is None or now.worker(slot) is None for slot in places)


def _held(
    guards: Guards, acts: Sequence[Act], plan: Plan, now: Snapshot, order: list[str], undone: dict[str, Reason],
    lost: Mapping[str, float],
) -> Held:  # fmt: skip
    held: Held = {}
    left = _Budget(guards, acts)
    for name in order:
        if homeless(now, name):
            left.take(plan, now, name)
            continue
        reason = left.reason(plan, now, name)
        if name not in undone:
            resting = _resting(guards, acts, now, name) or _recovering(guards, lost, now, name)
            reason = resting or _returning(guards, acts, plan, now, name) or reason
        if reason is not None:
            held[name] = reason
        else:
            left.take(plan, now, name)
    return held


def _resting(guards: Guards, acts: Sequence[Act], now: Snapshot, name: str) -> Reason | None:
    last = next((a for a in reversed(acts) if a.topology == name), None)
    if last is None:
        return None
    since_s = now.at_s - last.at_s
    if since_s < guards.cooldown_s:
        numbers = {"since_s": since_s, "cooldown_s": guards.cooldown_s}
        return Reason(name, ReasonCode.COOLDOWN, "held back: it was changed a moment ago", numbers)
    load, then = load_rows_s(now, name), last.load_rows_s
    same = load is None or then is None or abs(load - then) <= SAME_LOAD * max(then, 1.0)
    if last.rollback and same and since_s < guards.penance_s:
        numbers = {"since_s": since_s, "penance_s": guards.penance_s}
        why = "held back: the last change did not help, and its load is the same"
        return Reason(name, ReasonCode.AFTER_ROLLBACK, why, numbers)
    return None


def _recovering(guards: Guards, lost: Mapping[str, float], now: Snapshot, name: str) -> Reason | None:
    """Its query was restarted: what it costs and what waits then is not its load."""
    since_s = now.at_s - lost.get(name, float("-inf"))
    if since_s >= guards.after_loss_s:
        return None
    numbers = {"since_s": since_s, "after_loss_s": guards.after_loss_s}
    return Reason(name, ReasonCode.AFTER_LOSS, "held back: it lost a worker a moment ago", numbers)


def _returning(guards: Guards, acts: Sequence[Act], plan: Plan, now: Snapshot, name: str) -> Reason | None:
    """Hysteresis: no instance goes back and forth."""
    recent = [a for a in acts if a.topology == name and now.at_s - a.at_s < guards.return_s]
    for instance, slot in plan.placement.slots.items():
        here = now.placement.get(instance)
        if instance.topology == name and here not in (None, slot):
            came = next((a for a in reversed(recent) if a.before.get(instance) not in (None, here)), None)
            if came is not None and came.before.get(instance) == slot:
                numbers = {"since_s": now.at_s - came.at_s, "return_s": guards.return_s}
                why = f"held back: {instance} would go back to where it came from"
                return Reason(name, ReasonCode.WOULD_RETURN, why, numbers)
    return None


class _Budget:
    """What is left of this hour's budgets. Local to one decision."""

    def __init__(self, guards: Guards, acts: Sequence[Act]) -> None:
        self.first = not acts
        self.limits = {
            "cuts": guards.cuts_per_hour,
            "moves": guards.moves_per_hour,
            "rescales": guards.rescales_per_hour,
        }
        self.used = {what: float(sum(getattr(a, what) for a in acts)) for what in self.limits}

    def reason(self, plan: Plan, now: Snapshot, name: str) -> Reason | None:
        if self.first:
            return None
        for what, needs in _costs(plan, now, name).items():
            limit = self.limits[what]
            if limit is not None and needs and self.used[what] + needs > limit:
                numbers = {"used": self.used[what], "needs": needs, "limit": float(limit)}
                why = f"held back: this hour's budget of {what} is used up"
                return Reason(name, ReasonCode.BUDGET_USED_UP, why, numbers)
        return None

    def take(self, plan: Plan, now: Snapshot, name: str) -> None:
        for what, needs in _costs(plan, now, name).items():
            self.used[what] += needs


def _costs(plan: Plan, now: Snapshot, name: str) -> dict[str, float]:
    return {
        "cuts": 1.0,
        "moves": float(moves_of(plan, now, name)),
        "rescales": float(sum(r.topology == name for r in plan.rescales)),
    }


def _size(plan: Plan, now: Snapshot) -> dict[str, float]:
    names = changed(plan, now)
    moves = float(sum(moves_of(plan, now, name) for name in names))
    sizes = {"topologies": float(len(names)), "moves": moves, "rescales": float(len(plan.rescales))}
    return {**sizes, "limits": float(len(plan.limits_pct))}
