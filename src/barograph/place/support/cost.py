"""What a placement costs: rows a second between nodes and between workers, and what it uses."""

from collections.abc import Iterable

import numpy as np

from barograph.model import Allotment, Demand, Placement, Snapshot
from barograph.place.support.cluster_arrays import ClusterArrays, Whole
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays


def crossing(arrays: TopologyArrays, group: Whole) -> float:
    """Rows a second between instances of different groups; an instance without one (-1) is a group of its own."""
    total = 0.0
    groups = int(group.max(initial=-1)) + 1
    for block in arrays.blocks:
        a, b = group[block.sources], group[block.targets]
        if block.x is not None and block.z is not None:
            x = np.bincount(a[a >= 0], weights=block.x[a >= 0], minlength=groups)
            z = np.bincount(b[b >= 0], weights=block.z[b >= 0], minlength=groups)
            total += float(block.x.sum() * block.z.sum() - x @ z)
        else:
            same = (a[:, None] == b[None, :]) & (a[:, None] >= 0)
            total += float(block.rows[~same].sum()) * block.scale
    return total


def sent_rows_s(arrays: TopologyArrays) -> float:
    """Rows a second between all instances of a topology, wherever they are."""
    return sum(float(block.rows.sum()) * block.scale for block in arrays.blocks)


def nodes_and_slots(cluster: ClusterArrays, arrays: TopologyArrays, placement: Placement) -> tuple[Whole, Whole]:
    """The node and the slot number of each instance, -1 where it has none."""
    slot = np.array([cluster.number(placement.get(i)) for i in arrays.instances], dtype=np.int64)
    return np.where(slot >= 0, cluster.slot_node[slot], -1), slot


def traffic_between(now: Snapshot, demand: Demand, placement: Placement) -> tuple[float, float]:
    """Rows a second between nodes, and between workers."""
    cluster = ClusterArrays(now, Allotment())
    return traffic_of(cluster, topology_arrays(now, demand, cluster), placement)


def traffic_of(
    cluster: ClusterArrays, topologies: Iterable[TopologyArrays], placement: Placement
) -> tuple[float, float]:
    nodes = slots = 0.0
    for arrays in topologies:
        node, slot = nodes_and_slots(cluster, arrays, placement)
        nodes += crossing(arrays, node)
        slots += crossing(arrays, slot)
    return nodes, slots
