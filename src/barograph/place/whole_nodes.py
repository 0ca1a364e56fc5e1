"""The resource allocator of SPS and DPS (Chakraborty): a topology whose nodes do not change is not moved.

For every other topology, its W workers (or as many as its nodes have slots) are spread round-robin over its nodes, and
its instances round-robin over the workers. It uses seats only, no CPU, no memory and no traffic.
"""

from collections.abc import Sequence

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.even import book
from barograph.place.support.cluster_arrays import ClusterArrays, Whole, to_placement
from barograph.place.support.spread import OpenSlots, keep_where_possible
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import refused, wanted_workers


def whole_nodes(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The Placer of SPS and DPS."""
    cluster = ClusterArrays(now, allotment)
    topologies = topology_arrays(now, demand, cluster)
    same = {arrays.number: _unchanged(cluster, arrays) for arrays in topologies}
    for arrays in topologies:
        if same[arrays.number]:
            book(cluster, arrays, arrays.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for arrays in topologies:
        where = arrays.present if same[arrays.number] else round_robin(cluster, arrays, wanted_workers(arrays, cluster))
        if not same[arrays.number]:
            book(cluster, arrays, where)
        nodes = len(cluster.allowed(arrays.topology.name))
        left = [i for i, s in zip(arrays.instances, where.tolist(), strict=True) if s < 0]
        unplaced += refused(left, f"{arrays.topology.name} has no seat left on the {nodes} nodes it was given")
        why = "its nodes did not change" if same[arrays.number] else "round-robin over its nodes"
        code = ReasonCode.NODES_UNCHANGED if same[arrays.number] else ReasonCode.PLACED_ANEW
        reasons.append(Reason(arrays.topology.name, code, why, {"nodes": float(nodes)}))
        parts.append((arrays.instances, where))
    return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))


def _unchanged(cluster: ClusterArrays, arrays: TopologyArrays) -> bool:
    """Whether all of it runs, on exactly the nodes it may use (or on some of them if it has fewer instances)."""
    if arrays.size == 0 or (arrays.present < 0).any():
        return False
    given = set(cluster.allowed(arrays.topology.name).tolist())
    workers = min(wanted_workers(arrays, cluster), arrays.size)
    return len(set(cluster.slot_node[arrays.present].tolist())) == min(len(given), workers)


def round_robin(cluster: ClusterArrays, arrays: TopologyArrays, workers: int) -> Whole:
    """Workers round-robin over nodes, instances over workers; each worker takes the slot with most of its instances."""
    slots = OpenSlots(cluster, arrays).in_rounds(workers)
    if not slots:
        return np.full(arrays.size, -1, dtype=np.int64)
    group, count = np.full(arrays.size, -1, dtype=np.int64), np.zeros(len(slots), dtype=np.int64)
    room = cluster.seats_left[slots]
    turn = 0
    for i in range(arrays.size):
        for step in range(len(slots)):
            worker = (turn + step) % len(slots)
            if count[worker] < room[worker]:
                group[i], turn = worker, worker + 1
                count[worker] += 1
                break
    place = keep_where_possible(group, slots, arrays.present, count, room)
    return np.where(group >= 0, place[group], -1)
