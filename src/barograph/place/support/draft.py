"""A draft of a placement that is never overcommitted: every change is booked on nodes, slots and heaps at once.

It answers which instance fits where; it decides nothing.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from barograph.place.support.adopt import adopt
from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Real, Whole
from barograph.place.support.nearness import Nearness
from barograph.place.support.topology_arrays import TopologyArrays


class DraftPlacement:
    """where[c]: slot of each instance of topology c, -1 for none. It starts with the running instances."""

    def __init__(self, cluster: ClusterArrays, topologies: list[TopologyArrays]) -> None:
        self.cluster, self.topologies = cluster, topologies
        held = adopt(cluster, topologies)
        self.where: list[Whole] = [where for where, _ in held]
        self.heaps = [heaps for _, heaps in held]
        self.population: Whole = np.zeros(len(cluster.names), dtype=np.int64)
        for where in self.where:
            self.population += np.bincount(cluster.slot_node[where[where >= 0]], minlength=len(cluster.names))
        self._near: dict[int, Nearness] = {}

    def near(self, c: int) -> Nearness:
        """Created on first use, kept up to date from then on."""
        found = self._near.get(c)
        if found is None:
            found = self._near[c] = Nearness(self.topologies[c], len(self.cluster.names))
            found.put_all(self.nodes(c))
        return found

    def nodes(self, c: int) -> Whole:
        """The node of each instance, -1 for none."""
        return np.where(self.where[c] >= 0, self.cluster.slot_node[self.where[c]], -1)

    def fits(self, c: int, i: int) -> NDArray[np.bool_]:
        """The nodes that could take instance i now."""
        arrays, cluster = self.topologies[c], self.cluster
        cpu, memory = float(arrays.cpu_pct[i]), float(arrays.memory_mb[i])
        found: NDArray[np.bool_] = self.heaps[c].fits(memory)
        found &= (cluster.cpu_left + HAIR >= cpu) & (cluster.memory_left + HAIR >= memory)
        return found

    def put(self, c: int, i: int, node: int) -> bool:
        """Place an instance that has no place; its present slot is preferred. False if it does not fit."""
        arrays, cluster = self.topologies[c], self.cluster
        cpu, memory = float(arrays.cpu_pct[i]), float(arrays.memory_mb[i])
        if cluster.cpu_left[node] + HAIR < cpu or cluster.memory_left[node] + HAIR < memory:
            return False
        slot = self.heaps[c].slot_for(node, memory, int(arrays.present[i]))
        if slot < 0 or not self.heaps[c].allowed[node]:
            return False
        self.heaps[c].put(slot, cpu, memory)
        self.where[c][i] = slot
        self.population[node] += 1
        if c in self._near:
            self._near[c].put(i, node)
        return True

    def remove(self, c: int, i: int) -> int:
        """Remove an instance; returns the node it was on."""
        arrays = self.topologies[c]
        slot = int(self.where[c][i])
        node = int(self.cluster.slot_node[slot])
        self.heaps[c].remove(slot, float(arrays.cpu_pct[i]), float(arrays.memory_mb[i]))
        self.where[c][i] = -1
        self.population[node] -= 1
        if c in self._near:
            self._near[c].put(i, -1)
        return node

    def rearrange(self, targets: Mapping[int, Whole]) -> bool:
        """Put every instance of these topologies onto these nodes; if that is not possible, change nothing."""
        before = {c: self.where[c].copy() for c in targets}
        changed = [(c, i) for c, nodes in targets.items() for i in np.flatnonzero(nodes != self.nodes(c)).tolist()]
        self._clear(changed)
        if all(targets[c][i] < 0 or self.put(c, i, int(targets[c][i])) for c, i in changed):
            return True
        self._clear(changed)
        for c, i in changed:
            if before[c][i] >= 0:
                self.put_back(c, i, int(before[c][i]))
        return False

    def _clear(self, instances: Iterable[tuple[int, int]]) -> None:
        for c, i in instances:
            if self.where[c][i] >= 0:
                self.remove(c, i)

    def put_back(self, c: int, i: int, slot: int) -> None:
        arrays, node = self.topologies[c], int(self.cluster.slot_node[slot])
        self.heaps[c].put(slot, float(arrays.cpu_pct[i]), float(arrays.memory_mb[i]))
        self.where[c][i] = slot
        self.population[node] += 1
        if c in self._near:
            self._near[c].put(i, node)

    def room(self, c: int) -> tuple[Real, Real]:
        """CPU and memory each node has left for a topology; 0 if it may not use the node or finds no worker there."""
        may = self.heaps[c].allowed & ((self.heaps[c].room >= 0) | (self.heaps[c].fresh > 0))
        return np.where(may, self.cluster.cpu_left, 0.0), np.where(may, self.cluster.memory_left, 0.0)
