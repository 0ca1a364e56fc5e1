"""What must hold in every cycle of a controller, whatever breaks. Each law returns one sentence for each breach."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from barograph.control.guards import Guards
from barograph.control.guards.acts import changed, moves_of
from barograph.control.guards.guard import homeless
from barograph.model import Cycle, Instance, ReasonCode, Slot, Snapshot
from bench._chaos_faults import REST_S
from bench._chaos_world import ChaosWorld

STALE_S, SLACK_S = 3.0, 1.1


@dataclass(frozen=True)
class Change:
    """What one plan did to a topology. free: whether no cooldown and no budget holds for it."""

    at_s: float
    topology: str
    moves: int
    rescales: int
    free: bool
    unknown: bool  # the controller was killed before it could record it
    before: dict[Instance, Slot]
    after: dict[Instance, Slot]


def stale_plan(cycle: Cycle, ages_s: dict[str, float], covers_s: dict[str, float]) -> Iterator[str]:
    """No plan from stale figures."""
    now, plan = cycle.snapshot, cycle.plan
    new_levels = any(r.code is ReasonCode.NEW_LEVELS for r in plan.reasons)
    for t in now.topologies:
        off_s = abs(covers_s.get(t.name, now.cycle_s) - now.cycle_s)
        if ages_s.get(t.name, 0.0) <= STALE_S and off_s <= max(SLACK_S, now.cycle_s / 2) + 1e-6:
            continue
        named = [i for i in (*plan.shares_pct, *plan.limits_pct) if i.topology == t.name]
        if named or any(r.topology == t.name for r in plan.rescales):
            yield f"{t.name} is changed by figures that are {ages_s[t.name]:.1f} s old: {named[:2]} {plan.rescales}"
        if t.name in changed(plan, now) and not new_levels and not homeless(now, t.name):
            yield f"{t.name} is moved or cut by figures that are {ages_s[t.name]:.1f} s old"


def seats(world: ChaosWorld) -> Iterator[str]:
    """No seat is given twice, and nothing runs on a released node."""
    taken = Counter(world.sim.running().slots.values())
    for slot, count in taken.items():
        worker = world.sim.workers.get(slot)
        if worker is not None and count > worker.seats:
            yield f"{slot} has {worker.seats} seats and {count} instances"
        if slot.node in world.asleep:
            yield f"an instance runs on {slot.node}, which was released"


def rows(world: ChaosWorld) -> Iterator[str]:
    """Nothing is lost: every row that fell due is done, waits or is on its way."""
    lost = world.sim.grain.unaccounted(world.sim.now_s)
    if abs(lost) > 1e-3:
        yield f"{lost:g} rows are unaccounted for"


def changes_of(seen: Snapshot, cycle: Cycle, unknown: bool) -> list[Change]:
    plan = cycle.plan
    undone = {r.about for r in plan.reasons if r.code is ReasonCode.ROLLED_BACK}
    new_levels = any(r.code is ReasonCode.NEW_LEVELS for r in plan.reasons)
    return [
        Change(
            seen.at_s, name, moves_of(plan, seen, name), sum(r.topology == name for r in plan.rescales),
            homeless(seen, name) or new_levels or name in undone, unknown,
            {i: s for i, s in seen.placement.slots.items() if i.topology == name},
            {i: s for i, s in plan.placement.slots.items() if i.topology == name},
        )
        for name in changed(plan, seen)
    ]  # fmt: skip


def budgets(guards: Guards, done: list[Change]) -> Iterator[str]:
    """What was done within an hour, less the first plan and what is exempt."""
    mine = [c for c in done if not c.free and not c.unknown]
    first_s = done[0].at_s if done else 0.0
    later = [c for c in mine if c.at_s > first_s]
    # What is exempt counts as used too, but is never stopped: so only while it alone stays within a budget.
    whole = [c for c in done if not c.unknown]
    for what, limit, of in (
        ("cuts", guards.cuts_per_hour, lambda _: 1),
        ("moves", guards.moves_per_hour, lambda c: c.moves),
        ("rescales", guards.rescales_per_hour, lambda c: c.rescales),
    ):
        if limit is None or not later or not of(later[-1]):
            continue
        used = sum(of(c) for c in whole if c.at_s <= later[-1].at_s)
        if used > limit:
            yield f"{used} {what} within an hour, of which {limit} are allowed, with that of {later[-1].topology}"


def cooldowns(guards: Guards, done: list[Change]) -> Iterator[str]:
    last = done[-1] if done else None
    if last is None or last.free:
        return
    for earlier in reversed(done[:-1]):
        if earlier.topology == last.topology and earlier.at_s < last.at_s and not earlier.unknown:
            if last.at_s - earlier.at_s < guards.cooldown_s - 1e-6:
                yield f"{last.topology} is changed {last.at_s - earlier.at_s:.1f} s after its last change"
            return


def oscillation(guards: Guards, done: list[Change]) -> Iterator[str]:
    """Under a steady load no instance goes back to where it came from a moment ago."""
    last = done[-1] if done else None
    if last is None or last.free:
        return
    recent = [c for c in done[:-1] if c.topology == last.topology and last.at_s - c.at_s < guards.return_s]
    if any(c.free or c.unknown for c in recent):
        return
    for instance, slot in last.after.items():
        here = last.before.get(instance)
        came = next((c for c in reversed(recent) if c.before.get(instance) not in (None, here)), None)
        if here not in (None, slot) and came is not None and came.before.get(instance) == slot:
            yield f"{instance} goes back to {slot}, which it left {last.at_s - came.at_s:.0f} s ago"


def must_rest(world: ChaosWorld, from_s: float) -> bool:
    """Whether there was time enough without faults. from_s: the last fault."""
    return world.end_s - from_s >= REST_S


def rest(world: ChaosWorld, done: list[Change]) -> Iterator[str]:
    """Without a change of load and without faults it has come to rest: at most one change of each topology."""
    late = Counter(c.topology for c in done if c.at_s > world.end_s - REST_S / 2)
    for name, count in late.items():
        if count > 1:
            yield f"{name} is still changed, {count} times in the last {REST_S / 2:g} s, without a change of load"


def together(*laws: Iterable[str]) -> list[str]:
    return [breach for law in laws for breach in law]
