"""T-Storm (Xu et al. 2014): instances by falling traffic, each to the node that adds least inter-node traffic.

At most one worker per node and topology, node load within capacity, at most gamma * ceil(instances / nodes) instances
per node; ties to the least loaded node. It ignores the present placement and memory.

A schedule is computed when an instance has no place, when traffic is first known, and then every 300 s, the period of
the authors' schedule generator. In between nothing moves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.model.checks import require_positive
from barograph.place import PlaceDecision
from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Whole, to_placement
from barograph.place.support.cost import crossing
from barograph.place.support.nearness import Nearness, total_traffic
from barograph.place.support.period import COMPUTED_AT, waiting
from barograph.place.support.spread import OpenSlots
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import kept_as_is, measured, refused


@dataclass(frozen=True, slots=True)
class TStorm:
    """The Placer. gamma above 1: nodes may hold more instances, so fewer are used. generate_s: period of schedules."""

    gamma: float = 1.0
    generate_s: float = 300.0

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma)
        require_positive("generate_s", self.generate_s)

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        wait = waiting(history, now, self.generate_s)
        if wait is not None and all((arrays.present >= 0).all() for arrays in topologies):
            return kept_as_is(topologies, cluster, wait)
        instances = self._instances_that_share(cluster, topologies)
        count = np.zeros(len(cluster.names), dtype=np.int64)
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for arrays in topologies:
            nodes = cluster.allowed(arrays.topology.name)
            most = math.floor(self.gamma * math.ceil(instances[arrays.number] / max(1, len(nodes))) + HAIR)
            where = self._place(cluster, arrays, nodes, count, most)
            parts.append((arrays.instances, where))
            left = [i for i, s in zip(arrays.instances, where.tolist(), strict=True) if s < 0]
            unplaced += refused(left, f"no node has capacity, a slot and fewer than {most} instances")
            on_node = np.where(where >= 0, cluster.slot_node[where], -1)
            numbers = {"most_per_node": float(most), "inter_node_rows_per_s": crossing(arrays, on_node)}
            why = "each on the node that adds least inter-node traffic"
            reasons.append(Reason(arrays.topology.name, ReasonCode.PLACED_BY_TRAFFIC, why, numbers))
        if any(measured(arrays) for arrays in topologies):
            why = "a new schedule is applied"
            reasons.append(Reason("cluster", ReasonCode.SCHEDULE_COMPUTED, why, {COMPUTED_AT: now.at_s}))
        return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))

    @staticmethod
    def _instances_that_share(cluster: ClusterArrays, topologies: list[TopologyArrays]) -> list[int]:
        """For each topology, how many instances share its nodes, its own and those of other topologies."""
        nodes = [frozenset(cluster.allowed(c.topology.name).tolist()) for c in topologies]
        return [sum(c.size for c, n in zip(topologies, nodes, strict=True) if n == mine) for mine in nodes]

    def _place(self, cluster: ClusterArrays, arrays: TopologyArrays, nodes: Whole, count: Whole, most: int) -> Whole:
        where = np.full(arrays.size, -1, dtype=np.int64)
        slots = OpenSlots(cluster, arrays)
        worker = np.full(len(cluster.names), -1, dtype=np.int64)
        open_node = np.zeros(len(cluster.names), dtype=np.bool_)
        open_node[nodes] = slots.count[nodes] > 0
        near = Nearness(arrays, len(cluster.names))
        for i in np.argsort(-total_traffic(arrays), kind="stable").tolist():
            cpu = float(arrays.cpu_pct[i])
            fits = open_node & (cluster.cpu_left + HAIR >= cpu) & (count < most)
            if not fits.any():
                continue
            toward = np.where(fits, near.toward(i), -1.0)
            best = fits & (toward >= toward.max() * (1 - 1e-9))
            load = cluster.cpu_pct - cluster.cpu_left
            node = int(np.where(best, load, np.inf).argmin())
            if worker[node] < 0:
                worker[node] = slots.of(node)[0]
            slot = int(worker[node])
            where[i] = slot
            cluster.take(slot, arrays.number, cpu)
            count[node] += 1
            near.put(i, node)
            open_node[node] = cluster.seats_left[slot] > 0
        return where
