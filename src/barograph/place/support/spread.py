"""The bound on instances per worker (M), and slots for a topology that is placed from scratch. Shared by placers."""

import math

import numpy as np

from barograph.place.even import free_slots
from barograph.place.support.cluster_arrays import ClusterArrays, Whole
from barograph.place.support.match import assign
from barograph.place.support.topology_arrays import TopologyArrays


def most_per_worker(instances: int, workers: int, alpha: float) -> int:
    """M = ceil(E/W) + alpha * (E - W + 1 - ceil(E/W)), to the nearest whole (Aniello et al., section 3)."""
    least = math.ceil(instances / workers)
    return math.floor(least + alpha * (instances - workers + 1 - least) + 0.5)


class OpenSlots:
    """The slots open to a topology, node by node; the slots of a node are looked up on demand."""

    def __init__(self, cluster: ClusterArrays, arrays: TopologyArrays) -> None:
        free = free_slots(cluster, arrays, ())
        self.cluster = cluster
        self.count: Whole = np.bincount(cluster.slot_node[free], minlength=len(cluster.names))
        self.nodes: list[int] = np.flatnonzero(self.count).tolist()
        self.seats: Whole = cluster.seats_left[free]
        self._free, self._first = free, np.concatenate([[0], np.cumsum(self.count)])
        self._own = set(arrays.present.tolist())

    def of(self, node: int) -> list[int]:
        """The topology's own slots first, then empty ones, then the rest."""
        slots = self._free[self._first[node] : self._first[node + 1]].tolist()
        return sorted(slots, key=lambda s: (s not in self._own, s in self.cluster.held_now, s))

    def in_rounds(self, wanted: int) -> list[int]:
        """The first ``wanted`` slots, one of each node per round."""
        found: list[int] = []
        turn = 0
        slots: dict[int, list[int]] = {}
        while len(found) < min(wanted, len(self._free)):
            for node in self.nodes:
                if turn < self.count[node] and len(found) < wanted:
                    found.append(slots.setdefault(node, self.of(node))[turn])
            turn += 1
        return found


def keep_where_possible(group_of: Whole, places: list[int], present: Whole, size: Whole, room: Whole) -> Whole:
    """For each group the place it takes among ``places``, so that most instances stay.

    group_of: group of each instance. present: its place now. size: instances of each group, room: seats of each place.
    """
    column = {place: k for k, place in enumerate(places)}
    if not any(place in column for place in present.tolist()) and bool((size.max(initial=0) <= room).all()):
        return np.array(places[: len(size)], dtype=np.int64)
    worth = np.zeros((len(size), len(places)))
    for group, place in zip(group_of.tolist(), present.tolist(), strict=True):
        if group >= 0 and place in column:
            worth[group, column[place]] += 1.0
    worth[size[:, None] > room[None, :]] = -np.inf
    found = assign(worth)
    return np.where(found >= 0, np.array(places, dtype=np.int64)[found], -1)
