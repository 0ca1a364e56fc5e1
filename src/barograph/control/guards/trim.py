"""Takes topologies that are held back out of a plan; what is left is a valid plan. A topology is held back whole.

Changes that need seats of a topology that is held back are held back too; nothing else is decided here.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from barograph.engines.check import refusals, rescaled
from barograph.engines.reduced import with_fitting_cpu
from barograph.model import Placement, Plan, Reason, ReasonCode, Refusal, RefusalCode, Rescale, Slot, Snapshot

Held = dict[str, Reason]  # topology -> why it is held back


def without_rescales(plan: Plan, now: Snapshot, dropped: Iterable[Rescale]) -> Plan:
    """The plan without these rescales; a topology of which nothing else changes is not cut either."""
    gone = set(dropped)
    if not gone:
        return plan
    rescales = tuple(r for r in plan.rescales if r not in gone)
    kept = replace(plan, rescales=rescales)
    after = {t.name: rescaled(t, kept) for t in now.topologies}
    # Instances that only a dropped rescale would have created need no place.
    places = {
        i: s
        for i, s in plan.placement.slots.items()
        if i.topology not in after or i.index < after[i.topology].operator(i.operator).parallelism
    }
    busy = {r.topology for r in rescales} | {i.topology for i, s in places.items() if now.placement.get(i) != s}
    cuts = tuple(c for c in plan.cuts if c in busy or c not in {r.topology for r in gone})
    kept = replace(kept, placement=Placement(places), cuts=cuts)
    return with_fitting_cpu(plan, kept, now)


def made_valid(
    plan: Plan, now: Snapshot, held: Held, order: list[str], build: Callable[[Iterable[str]], Plan]
) -> tuple[Plan, Held]:
    """Hold back more topologies, the last in order first, until no worker has too many instances.

    order: topologies that change, the most important first. build: makes the plan without the given topologies.
    """
    held = dict(held)
    broken = _crowded(plan, now)
    while broken and (candidates := [name for name in order if name not in held]):
        into = {s: [n for n in candidates if _comes_into(plan, now, n, s)] for s in _slots(broken, now)}
        guilty = next((names[-1] for names in into.values() if names), candidates[-1])
        why = "held back: it needs seats of topologies that are held back"
        held[guilty] = Reason(guilty, ReasonCode.SEATS_HELD, why, {"held_back_topologies": float(len(held))})
        plan = build(held)
        broken = _crowded(plan, now)
    return plan, held


def _crowded(plan: Plan, now: Snapshot) -> list[Refusal]:
    """What would be refused for lack of seats. The plan's version is not checked."""
    room = (RefusalCode.WORKER_FULL, RefusalCode.TOO_FEW_SEATS)
    return [r for r in refusals(replace(plan, version=None), now) if r.code in room]


def _slots(broken: list[Refusal], now: Snapshot) -> list[Slot]:
    full = {r.slot for r in broken}
    return [w.slot for w in now.workers if w.slot in full]


def _comes_into(plan: Plan, now: Snapshot, topology: str, slot: Slot) -> bool:
    return any(
        i.topology == topology and s == slot and now.placement.get(i) != slot for i, s in plan.placement.slots.items()
    )
