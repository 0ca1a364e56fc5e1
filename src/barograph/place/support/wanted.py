"""How many workers a topology runs on, whether it was measured, and refusals and decisions that placers share."""

import math

import numpy as np

from barograph.model import Instance, Reason, Refusal, RefusalCode
from barograph.place import PlaceDecision
from barograph.place.support.cluster_arrays import ClusterArrays, to_placement
from barograph.place.support.topology_arrays import TopologyArrays


def wanted_workers(arrays: TopologyArrays, cluster: ClusterArrays) -> int:
    """min(W, E). W as the topology asks; else by its heap limit; else one for each node it may use.

    Shared workers (Spark) exist already at no extra cost, so W is all of them unless it asks for fewer.
    """
    topology = arrays.topology
    nodes = cluster.allowed(topology.name)
    if topology.workers is not None:
        wanted = topology.workers
    elif cluster.shared:
        wanted = int((cluster.first[nodes + 1] - cluster.first[nodes]).sum())
    elif topology.max_heap_mb:
        wanted = math.ceil(float(arrays.memory_mb.sum()) / topology.max_heap_mb)
    else:
        wanted = len(nodes)
    return max(1, min(wanted, arrays.size))


def refused(instances: list[Instance], reason: str) -> list[Refusal]:
    return [Refusal(str(instance), RefusalCode.NO_PLACE, reason) for instance in instances]


def too_few_slots(cluster: ClusterArrays, topologies: list[TopologyArrays]) -> str:
    """Why there can be no schedule, or an empty string: it needs sum of S >= sum of min(W, E)."""
    if cluster.shared:
        return "" if len(cluster.slot_node) else "no worker is alive"
    needed = sum(wanted_workers(arrays, cluster) for arrays in topologies)
    there = len(cluster.slot_node)
    if needed <= there:
        return ""
    return f"the topologies need {needed} slots and there are {there}: {needed - there} are missing"


def kept_as_is(topologies: list[TopologyArrays], cluster: ClusterArrays, reason: Reason) -> PlaceDecision:
    """Running instances stay where they are; the others are refused with the reason."""
    parts = [(arrays.instances, arrays.present) for arrays in topologies]
    left = [i for arrays in topologies for i, s in zip(arrays.instances, arrays.present.tolist(), strict=True) if s < 0]
    return PlaceDecision(to_placement(cluster, parts), tuple(refused(left, reason.why)), (reason,))


def measured(arrays: TopologyArrays) -> bool:
    """Whether CPU demand or traffic of the topology is known."""
    return bool(arrays.cpu_pct.any()) or any(bool(np.any(block.rows)) for block in arrays.blocks)
