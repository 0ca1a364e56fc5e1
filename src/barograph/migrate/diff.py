"""What one worker has to do to get from its running to its assigned instances: N-Storm's rule (TLU).

Pure set arithmetic. It knows nothing of seats, modes or time.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum

from barograph.model import Instance, Placement, Slot


class Action(StrEnum):
    """wait: it is about to be shut down. routes: only its neighbours may have moved. update: instances come or go."""

    WAIT = "wait"
    ROUTES = "routes"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class WorkerChange:
    """new = assigned - running, gone = running - assigned; both empty unless the action is ``update``."""

    action: Action
    new: tuple[Instance, ...] = ()
    gone: tuple[Instance, ...] = ()


def worker_change(running: Set[Instance], assigned: Set[Instance], same_topology: bool = True) -> WorkerChange:
    """The rule for one worker. ``same_topology`` is False where the slot now belongs to another topology."""
    if not assigned or not same_topology:
        return WorkerChange(Action.WAIT)
    new, gone = assigned - running, running - assigned
    if not new and not gone:
        return WorkerChange(Action.ROUTES)
    return WorkerChange(Action.UPDATE, tuple(sorted(new)), tuple(sorted(gone)))


def worker_changes(present: Placement, target: Placement) -> dict[Slot, WorkerChange]:
    """The rule for every worker that runs or is assigned anything, by slot."""
    before, after = present.by_slot(), target.by_slot()
    return {s: worker_change(set(before.get(s, ())), set(after.get(s, ()))) for s in sorted({*before, *after})}


def disturbed_slots(present: Placement, target: Placement) -> set[Slot]:
    """Slots in which some instance comes or goes."""
    moves = present.moves_to(target)
    return {s for m in moves for s in (m.source, m.target) if s is not None}


def by_topology(placement: Placement, names: Iterable[str]) -> Placement:
    """The part of a placement that belongs to these topologies."""
    wanted = set(names)
    return Placement({i: s for i, s in placement.slots.items() if i.topology in wanted})
