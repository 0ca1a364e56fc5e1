"""Local search over topologies that were just placed: whole small clusters as one puzzle, else topology by topology."""

from collections.abc import Iterable, Sequence

import numpy as np

from barograph.place.board import Real, Whole
from barograph.place.crew import Crew
from barograph.place.descend import Puzzle, descend
from barograph.place.layout import Layout
from barograph.place.search import best_of_starts

STARTS = 24
LARGEST = 400  # instances of a topology that is polished: the search looks at every pair
EFFORT = 4_000_000  # pairs looked at in all, for one topology


def polish_together(layout: Layout) -> None:
    """Everybody as one puzzle from several starts; also finds a place for who had none, where there is any."""
    everybody = range(len(layout.crews))
    nodes = np.arange(len(layout.board.names))
    puzzle, first = puzzle_of(layout, everybody, nodes)
    if len(first) == 0:
        return
    found = best_of_starts(puzzle, first, STARTS)
    if found is not None:
        layout.rearrange(split_by_crew(layout, everybody, nodes[found]))


def polish(layout: Layout, fresh: Iterable[int]) -> None:
    """Each of these topologies on the nodes it uses."""
    for c in fresh:
        here = layout.nodes(c)
        if layout.crews[c].size > LARGEST or (here < 0).any():
            continue
        nodes = np.unique(here)
        if len(nodes) < 2:
            continue
        puzzle, first = puzzle_of(layout, [c], nodes)
        found = descend(puzzle, first, steps=max(1, EFFORT // len(first) ** 2))
        layout.rearrange({c: nodes[found]})


def puzzle_of(layout: Layout, among: Sequence[int] | range, nodes: Whole) -> tuple[Puzzle, Whole]:
    """These crews on these nodes, everybody else where he is; and where they are now (-1: on none of the nodes)."""
    board = layout.board
    members = [layout.crews[c] for c in among]
    here = np.concatenate([layout.nodes(c) for c in among] or [np.zeros(0, dtype=np.int64)])
    column = np.full(len(board.names) + 1, -1, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    start = column[here]
    cpu, memory = (np.concatenate([getattr(m, f) for m in members] or [np.zeros(0)]) for f in ("cpu_pct", "memory_mb"))
    count = len(nodes)
    there = start >= 0
    room_cpu = board.cpu_left[nodes] + np.bincount(start[there], weights=cpu[there], minlength=count)
    room_memory = board.memory_left[nodes] + np.bincount(start[there], weights=memory[there], minlength=count)
    open_seats = np.bincount(board.slot_node, weights=np.minimum(board.seats_left, 1 << 30), minlength=len(board.names))
    seats = open_seats[nodes].astype(np.int64) + np.bincount(start[there], minlength=count)
    may = np.concatenate([np.repeat(layout.heaps[c].allowed[nodes][None, :], layout.crews[c].size, 0) for c in among])
    weight = np.concatenate([move_weight(m) for m in members] or [np.zeros(0)])
    return Puzzle(_rates(members), cpu, memory, room_cpu, room_memory, seats, may, weight), start


def move_weight(crew: Crew) -> Real:
    """What it costs to move each instance: 1; for a stateful one 1 more for each 64 MB of state, at least 1 more."""
    found: Real = 1.0 + np.where(crew.stateful, np.maximum(1.0, crew.state_mb / 64.0), 0.0)
    return found


def _rates(members: Sequence[Crew]) -> Real:
    size = sum(m.size for m in members)
    rate = np.zeros((size, size))
    first = 0
    for m in members:
        for b in m.blocks:
            rows = slice(first + b.source, first + b.source + b.rows.shape[0])
            columns = slice(first + b.target, first + b.target + b.rows.shape[1])
            rate[rows, columns] += b.rows * b.scale
        first += m.size
    rate += rate.T.copy()
    np.fill_diagonal(rate, 0.0)
    return rate


def split_by_crew(layout: Layout, among: Iterable[int], nodes: Whole) -> dict[int, Whole]:
    found, first = {}, 0
    for c in among:
        size = layout.crews[c].size
        found[c] = nodes[first : first + size]
        first += size
    return found
