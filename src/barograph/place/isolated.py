"""Isolation (Storm): an isolated topology's workers on its own machines, other topologies on the rest as in ``even``.

The allotment says which machines, and how many workers on each. Instances of workers that got no machine stay unplaced;
the other workers are placed. Topologies are served in order of submission, whatever their level.
"""

from collections.abc import Sequence

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.even import book, deal_evenly
from barograph.place.support.cluster_arrays import ClusterArrays, Whole, to_placement
from barograph.place.support.spread import OpenSlots, keep_where_possible
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import refused


def isolated(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The Placer of Storm's isolation scheduler."""
    cluster = ClusterArrays(now, allotment)
    topologies = topology_arrays(now, demand, cluster, by_level=False)
    for arrays in topologies:
        if arrays.topology.name not in allotment.workers:
            book(cluster, arrays, arrays.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for arrays in topologies:
        name = arrays.topology.name
        if name in allotment.workers:
            where, why = _on_its_machines(cluster, arrays, allotment)
            book(cluster, arrays, where)
        else:
            where, why = deal_evenly(cluster, arrays)
        parts.append((arrays.instances, where))
        unplaced += refused([i for i, s in zip(arrays.instances, where.tolist(), strict=True) if s < 0], why)
        numbers = {"machines": float(len(set(cluster.slot_node[where[where >= 0]].tolist())))}
        if name in allotment.workers:
            reasons.append(Reason(name, ReasonCode.PLACED_ON_OWN_NODES, "on its own machines", numbers))
        else:
            reasons.append(
                Reason(name, ReasonCode.PLACED_EVENLY, "round-robin over the machines that are not isolated", numbers)
            )
    return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))


def _on_its_machines(cluster: ClusterArrays, arrays: TopologyArrays, allotment: Allotment) -> tuple[Whole, str]:
    """Instances round-robin over all its workers; the workers that have a machine are placed."""
    name = arrays.topology.name
    slots, open_slots = list[int](), OpenSlots(cluster, arrays)
    for node, count in zip(allotment.nodes.get(name, ()), allotment.workers[name], strict=True):
        slots += open_slots.of(cluster.node_at[node])[:count]
    workers = max(1, min(arrays.size, arrays.topology.workers or max(arrays.topology.isolate_nodes, len(slots))))
    group = np.arange(arrays.size) % workers
    group[group >= len(slots)] = -1
    size = np.bincount(group[group >= 0], minlength=len(slots))[: len(slots)]
    place = keep_where_possible(group, slots, arrays.present, size, cluster.seats_left[slots])
    where = np.where(group >= 0, place[group], -1) if len(slots) else np.full(arrays.size, -1, dtype=np.int64)
    return where, f"{workers - len(slots)} of the {workers} workers of {name} got no machine"
