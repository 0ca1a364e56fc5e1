"""Books running instances as long as they are within the limits. The others have to be placed again.

From an overcommitted node (shares grew, declared memory changed) as few instances as possible are removed: lowest
priority level first, then stateless before stateful, small state before large, then the smallest one that is enough.
"""

import numpy as np

from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Whole, summed
from barograph.place.support.heaps import Heaps
from barograph.place.support.topology_arrays import TopologyArrays


def adopt(cluster: ClusterArrays, topologies: list[TopologyArrays]) -> list[tuple[Whole, Heaps]]:
    """For each topology the slot of each instance (-1: to be placed) and its workers; ``cluster`` is booked."""
    slots = [arrays.present.copy() for arrays in topologies]
    for arrays, where in zip(topologies, slots, strict=True):
        _claim_slots(cluster, arrays, where)
    _relieve_nodes(cluster, topologies, slots)
    for arrays, where in zip(topologies, slots, strict=True):
        _keep_to_heaps(cluster, arrays, where)
        there = where >= 0
        nodes = cluster.slot_node[where[there]]
        cluster.cpu_left -= summed(nodes, arrays.cpu_pct[there], len(cluster.names))
        cluster.memory_left -= summed(nodes, arrays.memory_mb[there], len(cluster.names))
        taken = np.bincount(where[there], minlength=len(cluster.seats_left))
        cluster.seats_left -= taken
        if not cluster.shared:
            cluster.owner[cluster.owner == arrays.number] = -1
            cluster.owner[where[there]] = arrays.number
    fresh = cluster.fresh_slots()
    found = []
    for arrays, where in zip(topologies, slots, strict=True):
        heaps = Heaps(cluster, arrays, fresh)
        heaps.adopt_all(where)
        found.append((where, heaps))
    return found


def _claim_slots(cluster: ClusterArrays, arrays: TopologyArrays, where: Whole) -> None:
    """A slot belongs to the first topology that claims it; instances beyond its seats lose their place."""
    there = np.flatnonzero(where >= 0)
    taken = cluster.owner[where[there]]
    where[there[(taken != -1) & (taken != arrays.number)]] = -1
    there = np.flatnonzero(where >= 0)
    if not cluster.shared:
        cluster.owner[where[there]] = arrays.number
        left = cluster.seats_left
    else:
        left = cluster.seats_left - cluster.claimed
    count = np.bincount(where[there], minlength=len(left))
    for slot in np.flatnonzero(count > left).tolist():
        where[np.flatnonzero(where == slot)[max(0, int(left[slot])) :]] = -1
    if cluster.shared:
        cluster.claimed += np.bincount(where[where >= 0], minlength=len(left))


def _relieve_nodes(cluster: ClusterArrays, topologies: list[TopologyArrays], slots: list[Whole]) -> None:
    number = np.concatenate([np.full(c.size, k) for k, c in enumerate(topologies)] or [np.zeros(0, dtype=np.int64)])
    index = np.concatenate([np.arange(c.size) for c in topologies] or [np.zeros(0, dtype=np.int64)])
    where = np.concatenate(slots or [np.zeros(0, dtype=np.int64)])
    node = np.where(where >= 0, cluster.slot_node[where], -1)
    cpu = np.concatenate([c.cpu_pct for c in topologies] or [np.zeros(0)])
    memory = np.concatenate([c.memory_mb for c in topologies] or [np.zeros(0)])
    there = node >= 0
    over_cpu = summed(node[there], cpu[there], len(cluster.names)) - cluster.cpu_pct
    over_memory = summed(node[there], memory[there], len(cluster.names)) - cluster.memory_mb
    state = np.concatenate([np.where(c.stateful, 1.0 + c.state_mb, 0.0) for c in topologies] or [np.zeros(0)])
    level = np.array([c.topology.level for c in topologies])
    for n in np.flatnonzero((over_cpu > HAIR) | (over_memory > HAIR)).tolist():
        here = np.flatnonzero(node == n).tolist()
        while here and (over_cpu[n] > HAIR or over_memory[n] > HAIR):
            i = _least_harm(here, number, level, state, cpu, memory, float(over_cpu[n]), float(over_memory[n]))
            here.remove(i)
            slots[int(number[i])][int(index[i])] = -1
            over_cpu[n] -= cpu[i]
            over_memory[n] -= memory[i]


def _least_harm(
    here: list[int],
    number: Whole,
    level: Whole,
    state: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    cpu: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    memory: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    over_cpu: float,
    over_memory: float,
) -> int:
    """Lowest level first, then least state; among equals the smallest that is enough by itself, else the largest."""

    def harm(i: int) -> tuple[float, float, bool, float, int]:
        suffices = cpu[i] + HAIR >= over_cpu and memory[i] + HAIR >= over_memory
        size = float(cpu[i]) if over_cpu > HAIR else float(memory[i])
        return -float(level[number[i]]), float(state[i]), not suffices, size if suffices else -size, -i

    return min(here, key=harm)


def _keep_to_heaps(cluster: ClusterArrays, arrays: TopologyArrays, where: Whole) -> None:
    """If a worker holds more than its heap limit, its last instances lose their place."""
    limit = arrays.topology.max_heap_mb
    if cluster.shared or not limit:
        return
    there = where >= 0
    used = summed(where[there], arrays.memory_mb[there], len(cluster.slot_node))
    for slot in np.flatnonzero(used > limit + HAIR).tolist():
        for i in np.flatnonzero(where == slot)[::-1].tolist():
            if used[slot] <= limit + HAIR:
                break
            where[i] = -1
            used[slot] -= arrays.memory_mb[i]
