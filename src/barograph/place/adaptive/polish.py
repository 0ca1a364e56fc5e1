"""Local search over topologies that were just placed: small clusters as one problem, else topology by topology."""

from collections.abc import Iterable, Sequence

import numpy as np

from barograph.place.adaptive.descend import Puzzle, descend
from barograph.place.adaptive.search import best_of_starts
from barograph.place.support.cluster_arrays import Real, Whole
from barograph.place.support.draft import DraftPlacement
from barograph.place.support.topology_arrays import TopologyArrays

STARTS = 24
LARGEST = 400  # most instances of a topology that is improved: the search examines every pair
EFFORT = 4_000_000  # pairs examined in total, for one topology


def polish_together(draft: DraftPlacement) -> None:
    """All topologies as one problem, from several starts; may also find places for instances that had none."""
    every_topology = range(len(draft.topologies))
    nodes = np.arange(len(draft.cluster.names))
    puzzle, first = puzzle_of(draft, every_topology, nodes)
    if len(first) == 0:
        return
    found = best_of_starts(puzzle, first, STARTS)
    if found is not None:
        draft.rearrange(split_by_topology(draft, every_topology, nodes[found]))


def polish(draft: DraftPlacement, fresh: Iterable[int]) -> None:
    """Each of these topologies on the nodes it uses."""
    for c in fresh:
        here = draft.nodes(c)
        if draft.topologies[c].size > LARGEST or (here < 0).any():
            continue
        nodes = np.unique(here)
        if len(nodes) < 2:
            continue
        puzzle, first = puzzle_of(draft, [c], nodes)
        found = descend(puzzle, first, steps=max(1, EFFORT // len(first) ** 2))
        draft.rearrange({c: nodes[found]})


def puzzle_of(draft: DraftPlacement, among: Sequence[int] | range, nodes: Whole) -> tuple[Puzzle, Whole]:
    """These topologies on these nodes, all others fixed; and their present nodes (-1: none of these nodes)."""
    cluster = draft.cluster
    members = [draft.topologies[c] for c in among]
    here = np.concatenate([draft.nodes(c) for c in among] or [np.zeros(0, dtype=np.int64)])
    column = np.full(len(cluster.names) + 1, -1, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    start = column[here]
    cpu, memory = (np.concatenate([getattr(m, f) for m in members] or [np.zeros(0)]) for f in ("cpu_pct", "memory_mb"))
    count = len(nodes)
    there = start >= 0
    room_cpu = cluster.cpu_left[nodes] + np.bincount(start[there], weights=cpu[there], minlength=count)
    room_memory = cluster.memory_left[nodes] + np.bincount(start[there], weights=memory[there], minlength=count)
    open_seats = np.bincount(
        cluster.slot_node, weights=np.minimum(cluster.seats_left, 1 << 30), minlength=len(cluster.names)
    )
    seats = open_seats[nodes].astype(np.int64) + np.bincount(start[there], minlength=count)
    may = np.concatenate(
        [np.repeat(draft.heaps[c].allowed[nodes][None, :], draft.topologies[c].size, 0) for c in among]
    )
    weight = np.concatenate([move_weight(m) for m in members] or [np.zeros(0)])
    return Puzzle(_rates(members), cpu, memory, room_cpu, room_memory, seats, may, weight), start


def move_weight(arrays: TopologyArrays) -> Real:
    """What it costs to move each instance: 1; for a stateful one 1 more for each 64 MB of state, at least 1 more."""
    found: Real = 1.0 + np.where(arrays.stateful, np.maximum(1.0, arrays.state_mb / 64.0), 0.0)
    return found


def _rates(members: Sequence[TopologyArrays]) -> Real:
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


def split_by_topology(draft: DraftPlacement, among: Iterable[int], nodes: Whole) -> dict[int, Whole]:
    found, first = {}, 0
    for c in among:
        size = draft.topologies[c].size
        found[c] = nodes[first : first + size]
        first += size
    return found
