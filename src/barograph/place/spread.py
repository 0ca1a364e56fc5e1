"""The bound on instances per worker (M), and slots for a topology that is placed from nothing. Shared by placers."""

import math
from collections import defaultdict

import numpy as np

from barograph.place.board import Board, Whole
from barograph.place.crew import Crew
from barograph.place.even import free_slots
from barograph.place.match import assign


def most_per_worker(instances: int, workers: int, alpha: float) -> int:
    """M = ceil(E/W) + alpha * (E - W + 1 - ceil(E/W)), to the nearest whole (Aniello et al., section 3)."""
    least = math.ceil(instances / workers)
    return math.floor(least + alpha * (instances - workers + 1 - least) + 0.5)


def slots_by_node(board: Board, crew: Crew) -> dict[int, list[int]]:
    """Node -> its slots open to the topology: its own first, then those nobody holds now, then the rest."""
    held_now = board.held_now
    own = set(crew.present.tolist())
    found: dict[int, list[int]] = defaultdict(list)
    for slot in free_slots(board, crew, ()).tolist():
        found[int(board.slot_node[slot])].append(slot)
    for slots in found.values():
        slots.sort(key=lambda s: (s not in own, s in held_now, s))
    return dict(found)


def in_rounds(slots: dict[int, list[int]], wanted: int) -> list[int]:
    """The first ``wanted`` slots, one of each node a round."""
    rounds = max((len(s) for s in slots.values()), default=0)
    dealt = [slots[n][k] for k in range(rounds) for n in sorted(slots) if k < len(slots[n])]
    return dealt[:wanted]


def keep_where_possible(group_of: Whole, places: list[int], present: Whole, size: Whole, room: Whole) -> Whole:
    """For each group the place it takes among ``places``, so that most instances stay.

    group_of: group of each instance. present: its place now. size: instances of each group, room: seats of each place.
    """
    column = {place: k for k, place in enumerate(places)}
    worth = np.zeros((len(size), len(places)))
    for group, place in zip(group_of.tolist(), present.tolist(), strict=True):
        if group >= 0 and place in column:
            worth[group, column[place]] += 1.0
    worth[size[:, None] > room[None, :]] = -np.inf
    found = assign(worth)
    return np.where(found >= 0, np.array(places, dtype=np.int64)[found], -1)
