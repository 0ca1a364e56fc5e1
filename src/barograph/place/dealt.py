"""The resource allocator of SPS and DPS (Chakraborty): a topology whose nodes do not change is not touched at all.

Any other gets its nodes, its W workers (or as many as the nodes have slots) spread round-robin over them, and its
instances round-robin over the workers. It knows seats, no CPU, no memory and no traffic.
"""

from collections.abc import Sequence

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.board import Board, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.even import book
from barograph.place.spread import OpenSlots, keep_where_possible
from barograph.place.wanted import refused, wanted_workers


def dealt(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The Placer of SPS and DPS."""
    board = Board(now, allotment)
    everyone = crews(now, demand, board)
    same = {crew.number: _unchanged(board, crew) for crew in everyone}
    for crew in everyone:
        if same[crew.number]:
            book(board, crew, crew.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for crew in everyone:
        where = crew.present if same[crew.number] else deal(board, crew, wanted_workers(crew, board))
        if not same[crew.number]:
            book(board, crew, where)
        nodes = len(board.allowed(crew.topology.name))
        left = [i for i, s in zip(crew.instances, where.tolist(), strict=True) if s < 0]
        unplaced += refused(left, f"{crew.topology.name} has no seat left on the {nodes} nodes it was given")
        why = "its nodes did not change" if same[crew.number] else "dealt anew over its nodes"
        reasons.append(Reason(crew.topology.name, why, {"nodes": float(nodes)}))
        parts.append((crew.instances, where))
    return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))


def _unchanged(board: Board, crew: Crew) -> bool:
    """Whether it runs whole, on exactly the nodes it may use (or on some of them where it has fewer instances)."""
    if crew.size == 0 or (crew.present < 0).any():
        return False
    given = set(board.allowed(crew.topology.name).tolist())
    workers = min(wanted_workers(crew, board), crew.size)
    return len(set(board.slot_node[crew.present].tolist())) == min(len(given), workers)


def deal(board: Board, crew: Crew, workers: int) -> Whole:
    """Workers over nodes in rounds, instances over workers in rounds, each worker where most of it is already."""
    slots = OpenSlots(board, crew).in_rounds(workers)
    if not slots:
        return np.full(crew.size, -1, dtype=np.int64)
    group, count = np.full(crew.size, -1, dtype=np.int64), np.zeros(len(slots), dtype=np.int64)
    room = board.seats_left[slots]
    turn = 0
    for i in range(crew.size):
        for step in range(len(slots)):
            worker = (turn + step) % len(slots)
            if count[worker] < room[worker]:
                group[i], turn = worker, worker + 1
                count[worker] += 1
                break
    place = keep_where_possible(group, slots, crew.present, count, room)
    return np.where(group >= 0, place[group], -1)
