"""Even, what Storm does by default: workers over nodes in rounds, instances over workers in rounds.

It looks at slots and seats only: no CPU, no memory, no traffic. Live instances stay, except in slots that hold another
number of instances than any share of the ideal split, and only while something has to be scheduled anyway.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from barograph.model import Allotment, Demand, Reason, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.board import Board, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.wanted import refused, wanted_workers


def even(now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
    """The Placer of Storm's default scheduler."""
    board = Board(now, allotment)
    everyone = crews(now, demand, board)
    for crew in everyone:  # what is alive keeps its slot until its own topology's turn
        _book(board, crew, crew.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for crew in everyone:
        where, why = _deal(board, crew)
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


def _book(board: Board, crew: Crew, where: Whole) -> None:
    for slot, count in Counter(where[where >= 0].tolist()).items():
        board.take(slot, crew.number, count=count)


def _release(board: Board, slots: Sequence[int], held: dict[int, list[int]]) -> None:
    for slot in slots:
        board.seats_left[slot] += len(held[slot])
        board.owner[slot] = -1


def _deal(board: Board, crew: Crew) -> tuple[Whole, str]:
    """One topology's turn: the slot of each instance, and why some have none."""
    where = crew.present.copy()
    held: dict[int, list[int]] = defaultdict(list)
    for i, slot in enumerate(where.tolist()):
        if slot >= 0:
            held[slot].append(i)
    free = _free_slots(board, crew, held)
    target = min(wanted_workers(crew, board), len(free) + len(held))
    missing = [i for i, slot in enumerate(where.tolist()) if slot < 0]
    if len(held) < target or missing:
        wrong = _slots_off_the_ideal(held, crew.size, target)
        _release(board, wrong, held)
        for slot in wrong:
            where[held.pop(slot)] = -1
        missing = [i for i, slot in enumerate(where.tolist()) if slot < 0]
        free = _free_slots(board, crew, held)
        target = min(wanted_workers(crew, board), len(free) + len(held))
    if missing:
        _deal_missing(board, crew, where, missing, sorted_slots(board, free), target - len(held))
    why = f"no seat is free in any of the {len(free) + len(held)} slots {crew.topology.name} may use"
    return where, why


def _deal_missing(board: Board, crew: Crew, where: Whole, missing: list[int], slots: list[int], workers: int) -> None:
    """Instance i to new worker i mod k; a worker without seats is passed over; more workers where seats are short."""
    seats = np.cumsum(board.seats_left[slots]) if slots else np.zeros(0)
    enough = int(np.searchsorted(seats, len(missing))) + 1
    ring = slots[: max(workers, enough)]
    turn = 0
    for i in missing:
        for step in range(len(ring)):
            slot = ring[(turn + step) % len(ring)]
            if board.seats_left[slot] > 0:
                where[i] = slot
                board.take(slot, crew.number)
                turn += step + 1
                break


def _free_slots(board: Board, crew: Crew, held: dict[int, list[int]]) -> list[int]:
    """Slots with a seat in which this topology has nothing yet."""
    found: list[int] = []
    for node in board.allowed(crew.topology.name).tolist():
        found += [s for s in board.open_to(crew.number, board.slots_of(node)).tolist() if s not in held]
    return found


def sorted_slots(board: Board, free: Sequence[int]) -> list[int]:
    """Nodes by free slots falling (ties by order), one slot of each node a round, slots rising."""
    of_node: dict[int, list[int]] = defaultdict(list)
    for slot in sorted(free):
        of_node[int(board.slot_node[slot])].append(slot)
    order = sorted(of_node, key=lambda n: (-len(of_node[n]), n))
    rounds = max((len(s) for s in of_node.values()), default=0)
    return [of_node[n][k] for k in range(rounds) for n in order if k < len(of_node[n])]


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
