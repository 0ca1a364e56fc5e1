"""Even, what Storm does by default: workers over nodes in rounds, instances over workers in rounds.

It looks at slots and seats only: no CPU, no memory, no traffic, no priority; topologies are served in order of their
submission. Live instances stay, except in slots that hold another number of instances than any share of the ideal
split, and only while something has to be scheduled anyway.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.board import Board, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.wanted import refused, wanted_workers


def even(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The Placer of Storm's default scheduler."""
    board = Board(now, allotment)
    everyone = crews(now, demand, board, by_level=False)
    for crew in everyone:  # what is alive keeps its slot until its own topology's turn
        book(board, crew, crew.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for crew in everyone:
        where, why = deal_evenly(board, crew)
        parts.append((crew.instances, where))
        unplaced += refused([i for i, s in zip(crew.instances, where.tolist(), strict=True) if s < 0], why)
        moved = float(((where != crew.present) & (where >= 0)).sum())
        numbers = {
            "instances": float(crew.size),
            "workers": float(len(set(where[where >= 0].tolist()))),
            "moves": moved,
        }
        reasons.append(Reason(crew.topology.name, "dealt in rounds over the free slots", numbers))
    return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))


def book(board: Board, crew: Crew, where: Whole) -> None:
    """Take the seats of those that have a slot."""
    slots, counts = np.unique(where[where >= 0], return_counts=True)
    board.seats_left[slots] -= counts
    if not board.shared:
        board.owner[slots] = crew.number


def _release(board: Board, slots: Sequence[int], held: dict[int, list[int]]) -> None:
    for slot in slots:
        board.seats_left[slot] += len(held[slot])
        board.owner[slot] = -1


def deal_evenly(board: Board, crew: Crew) -> tuple[Whole, str]:
    """One topology's turn: the slot of each instance, and why some have none."""
    where = crew.present.copy()
    held: dict[int, list[int]] = defaultdict(list)
    for i, slot in enumerate(where.tolist()):
        if slot >= 0:
            held[slot].append(i)
    free = free_slots(board, crew, held)
    target = min(wanted_workers(crew, board), len(free) + len(held))
    missing = [i for i, slot in enumerate(where.tolist()) if slot < 0]
    if len(held) < target or missing:
        wrong = _slots_off_the_ideal(held, crew.size, target)
        _release(board, wrong, held)
        for slot in wrong:
            where[held.pop(slot)] = -1
        missing = [i for i, slot in enumerate(where.tolist()) if slot < 0]
        free = free_slots(board, crew, held)
        target = min(wanted_workers(crew, board), len(free) + len(held))
    if missing:
        _deal_missing(board, crew, where, missing, sorted_slots(board, free), target - len(held))
    why = f"no seat is free in any of the {len(free) + len(held)} slots {crew.topology.name} may use"
    return where, why


def _deal_missing(board: Board, crew: Crew, where: Whole, missing: list[int], slots: Whole, workers: int) -> None:
    """Instance i to new worker i mod k; a worker without seats is passed over; more workers where seats are short."""
    enough = int(np.searchsorted(np.cumsum(board.seats_left[slots]), len(missing))) + 1
    ring = slots[: max(workers, enough)]
    if len(ring) == 0:
        return
    dealt = ring[np.arange(len(missing)) % len(ring)]
    if bool((np.bincount(dealt, minlength=len(board.seats_left)) <= board.seats_left).all()):
        where[missing] = dealt
        book(board, crew, dealt)
        return
    turn = 0
    for i in missing:
        for step in range(len(ring)):
            slot = int(ring[(turn + step) % len(ring)])
            if board.seats_left[slot] > 0:
                where[i] = slot
                board.take(slot, crew.number)
                turn += step + 1
                break


def free_slots(board: Board, crew: Crew, held: Iterable[int]) -> Whole:
    """Slots with a seat in which this topology has nothing yet, in the cluster's order."""
    mine = np.zeros(len(board.names), dtype=np.bool_)
    mine[board.allowed(crew.topology.name)] = True
    fresh = np.ones(len(board.slot_node), dtype=np.bool_)
    fresh[list(held)] = False
    return board.open_to(crew.number, np.flatnonzero(mine[board.slot_node] & fresh))


def sorted_slots(board: Board, free: Whole) -> Whole:
    """Nodes by free slots falling (ties by order), one slot of each node a round, slots rising."""
    nodes = board.slot_node[free]
    counts = np.bincount(nodes, minlength=len(board.names))
    before = np.concatenate([[0], np.cumsum(counts)])
    turn = np.arange(len(free)) - before[nodes]  # free is sorted by node: the how-manieth of its node
    found: Whole = free[np.lexsort((nodes, -counts[nodes], turn))]
    return found


def _slots_off_the_ideal(held: dict[int, list[int]], instances: int, workers: int) -> list[int]:
    """Slots whose instance count matches no remaining share of the ideal split."""
    base, more = divmod(instances, workers) if workers else (0, 0)
    shares = Counter({base: workers - more}) + Counter({base + 1: more})
    wrong = []
    for slot in sorted(held):
        if shares[len(held[slot])] > 0:
            shares[len(held[slot])] -= 1
        else:
            wrong.append(slot)
    return wrong
