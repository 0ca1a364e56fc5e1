"""One topology's workers on each node: one more worker if the heap limit or the seats of a worker require it.

Shared workers (Spark) exist already with a heap of fixed size, so only seats count. All topologies of a decision share
one count of fresh slots, so that each sees which slots the others took.
"""

from collections import defaultdict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Real, Whole
from barograph.place.support.topology_arrays import TopologyArrays


class Heaps:
    """fresh: slots of each node in which a topology could start a worker, shared by all. room: of its own workers."""

    def __init__(self, cluster: ClusterArrays, arrays: TopologyArrays, fresh: Whole) -> None:
        self.cluster, self.arrays, self.fresh = cluster, arrays, fresh
        limit = arrays.topology.max_heap_mb
        self.limit = np.inf if cluster.shared or not limit else float(limit)
        self.used: dict[int, float] = defaultdict(float)  # slot -> heap of this topology's instances in it
        self.held: dict[int, int] = defaultdict(int)  # slot -> how many of its instances are in it
        self.mine: dict[int, list[int]] = defaultdict(list)  # node -> its slots, in the order of use
        self.room: Real = np.full(len(cluster.names), -1.0)  # the most memory that one of its workers there has left
        self.allowed = np.zeros(len(cluster.names), dtype=np.bool_)
        self.allowed[cluster.allowed(arrays.topology.name)] = True

    def fits(self, memory_mb: float, avoid: Collection[int] = ()) -> NDArray[np.bool_]:
        """Nodes with a worker of the topology or a fresh slot for that much memory, not in ``avoid``."""
        found = self.room + HAIR >= memory_mb
        if memory_mb <= self.limit + HAIR:
            found |= self.fresh > 0
        found &= self.allowed
        for node in {int(self.cluster.slot_node[slot]) for slot in avoid}:
            found[node] = found[node] and self.slot_for(node, memory_mb, avoid=avoid) >= 0
        return found

    def adopt_all(self, slots: Whole) -> None:
        """Enter running instances; the caller books their seats, CPU and memory in the cluster."""
        memory = self.arrays.memory_mb
        for i in np.flatnonzero(slots >= 0).tolist():
            self._enter(int(slots[i]), float(memory[i]))
        for node in list(self.mine):
            self._look(node)

    def _enter(self, slot: int, memory_mb: float) -> None:
        if self.held[slot] == 0:
            self.mine[int(self.cluster.slot_node[slot])].append(slot)
        self.held[slot] += 1
        self.used[slot] += memory_mb

    def _look(self, node: int) -> None:
        if self.cluster.shared:
            return  # other topologies use the same workers: only the common count of seats is valid
        seats = self.cluster.seats_left
        self.room[node] = max((self.limit - self.used[s] for s in self.mine[node] if seats[s] > 0), default=-1.0)

    def slot_for(self, node: int, memory_mb: float, prefer: int = -1, avoid: Collection[int] = ()) -> int:
        """The preferred slot if possible, else the first own worker with room, else a fresh slot; -1 if there is none.

        avoid: slots that must not be chosen.
        """
        cluster = self.cluster
        own = self.mine[node]
        if prefer >= 0 and cluster.slot_node[prefer] == node and (prefer in own or cluster.is_fresh(prefer)):
            own = [prefer, *own]
        for slot in own:
            if slot not in avoid and cluster.seats_left[slot] > 0 and self.used[slot] + memory_mb <= self.limit + HAIR:
                return slot
        if memory_mb > self.limit + HAIR:
            return -1
        second = -1
        for slot in cluster.slots_of(node):
            if cluster.is_fresh(slot) and slot not in own:
                if slot not in cluster.held_now:
                    return slot
                second = slot if second < 0 else second  # instances run there now: only if no other slot is left
        return second

    def put(self, slot: int, cpu_pct: float, memory_mb: float) -> None:
        cluster = self.cluster
        node = int(cluster.slot_node[slot])
        before = cluster.is_fresh(slot)
        cluster.take(slot, self.arrays.number, cpu_pct, memory_mb)
        self.fresh[node] += int(cluster.is_fresh(slot)) - int(before)
        self._enter(slot, memory_mb)
        self._look(node)

    def remove(self, slot: int, cpu_pct: float, memory_mb: float) -> None:
        """Remove an instance; a slot without instances belongs to no topology."""
        cluster = self.cluster
        node = int(cluster.slot_node[slot])
        before = cluster.is_fresh(slot)
        cluster.take(slot, self.arrays.number, -cpu_pct, -memory_mb, count=-1)
        self.used[slot] -= memory_mb
        self.held[slot] -= 1
        if self.held[slot] == 0:
            self.mine[node].remove(slot)
            del self.used[slot]
            if not cluster.shared:
                cluster.vacate(slot)
        self.fresh[node] += int(cluster.is_fresh(slot)) - int(before)
        self._look(node)
