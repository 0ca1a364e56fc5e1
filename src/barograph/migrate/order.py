"""Which topologies are cut together and which wait for others, so that no worker is overfull at any point.

All moves of one topology share its one cut: its instances leave and come at the same epoch boundary. Topologies do
not end their epochs at the same instant, so one that moves in may have to wait for the seats of one that moves out.
Where two wait for each other they are cut together: neither starts again before both have stopped.
"""

from collections import Counter
from dataclasses import dataclass

from barograph.model import Move, Placement, Slot, Snapshot


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """Topologies that are cut together. Steps follow each other.

    joint: they wait for each other's seats, so none may start again before all have stopped; else any order will do.
    """

    topologies: tuple[str, ...]
    moves: tuple[Move, ...]
    joint: bool = False


def seats_of(now: Snapshot) -> dict[Slot, int | None]:
    """Seats of every slot that is known; None for no limit."""
    seats = {Slot(n.name, k): n.seats for n in now.nodes for k in range(n.slots)} if not now.shared_workers else {}
    seats.update({w.slot: w.seats for w in now.workers})
    return seats


def steps(now: Snapshot, target: Placement) -> tuple[MigrationStep, ...]:
    """The order of cuts; the fewest steps in which every move finds a free seat."""
    moves = now.placement.moves_to(target)
    waiting: dict[str, list[Move]] = {}
    for move in moves:
        waiting.setdefault(move.instance.topology, []).append(move)
    seats = seats_of(now)
    taken = Counter(now.placement.slots.values())
    found: list[MigrationStep] = []
    while waiting:
        free = _fitting_together(waiting, taken, seats)
        ready = free or sorted(waiting)
        step = MigrationStep(tuple(ready), tuple(m for name in ready for m in waiting.pop(name)), joint=not free)
        for move in step.moves:
            _apply(move, taken)
        found.append(step)
    return tuple(found)


def _apply(move: Move, taken: Counter[Slot]) -> None:
    if move.source is not None:
        taken[move.source] -= 1
    if move.target is not None:
        taken[move.target] += 1


def _fitting_together(waiting: dict[str, list[Move]], taken: Counter[Slot], seats: dict[Slot, int | None]) -> list[str]:
    """Topologies that can all be cut at once, in any order: none needs a seat that another one frees."""
    ready: list[str] = []
    peak = Counter(taken)
    for name in sorted(waiting):
        change: Counter[Slot] = Counter()
        for move in waiting[name]:
            if move.source is not None:
                change[move.source] -= 1
            if move.target is not None:
                change[move.target] += 1
        grows = {slot: more for slot, more in change.items() if more > 0}
        if all(_holds(seats.get(slot), peak[slot] + more) for slot, more in grows.items()):
            ready.append(name)
            peak.update(grows)
    return ready


def _holds(seats: int | None, count: int) -> bool:
    return seats is None or count <= seats
