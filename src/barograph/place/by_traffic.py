"""A schedule by measured traffic (Aniello et al., 3.2). ``online`` decides when it is computed and applied.

Per topology: instances into workers, then workers onto nodes, pair by pair in falling order of traffic. Bounds: M
instances per worker, slots per node, load within the node's bound B, exactly min(W, E) workers. Memory is ignored.
It ignores the present placement until the end: then new nodes and workers are matched to the present ones that hold
most of the same instances.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from barograph.model import Allotment, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.even import book
from barograph.place.online_pairing import Bins
from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Real, Whole, summed, to_placement
from barograph.place.support.cost import crossing
from barograph.place.support.links import links_of, pairs_of
from barograph.place.support.match import assign
from barograph.place.support.pairs import OperatorPairs, falling
from barograph.place.support.spread import OpenSlots, keep_where_possible, most_per_worker
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import kept_as_is, refused, too_few_slots, wanted_workers

MOST_TURNS = 8


@dataclass(frozen=True, slots=True)
class ByTraffic:
    """alpha: balanced (0) to concentrated (1) workers. bound_pct: B, the share of a node's CPU its instances may need.

    nodes_to_use: how many nodes a topology is spread over, None for all it may use. spread: whether a node takes at
    most ceil(workers / nodes) of its workers; without it all workers may end up on one node if the bounds allow it.
    """

    alpha: float = 0.0
    nodes_to_use: int | None = None
    spread: bool = True
    bound_pct: float = 100.0

    def schedule(self, now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        decision = self._once(now, demand, allotment)
        # A group is matched to a worker by the instances that run there already. From an empty placement the next
        # schedules would therefore still move instances, so schedules are repeated until they no longer change.
        for _ in range(MOST_TURNS if now.shared_workers and not now.placement else 0):
            again = self._once(replace(now, placement=decision.placement), demand, allotment)
            if again.unplaced or again.placement == decision.placement:
                break
            decision = again
        return decision

    def _once(self, now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        if missing := too_few_slots(cluster, topologies):
            return kept_as_is(topologies, cluster, Reason("cluster", ReasonCode.TOO_FEW_SLOTS, missing))
        held_mhz = np.zeros(len(cluster.names))
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for arrays in topologies:
            load = load_mhz(cluster, arrays)
            where = self._place(cluster, arrays, load, held_mhz)
            book(cluster, arrays, where)
            placed = where >= 0
            np.add.at(held_mhz, cluster.slot_node[where[placed]], load[placed])
            parts.append((arrays.instances, where))
            left = [i for i, s in zip(arrays.instances, where.tolist(), strict=True) if s < 0]
            unplaced += refused(left, f"no worker of {arrays.topology.name} fits a node with capacity and a slot left")
            nodes = np.where(placed, cluster.slot_node[where], -1)
            numbers = {
                "workers": float(len(set(where[placed].tolist()))),
                "inter_node_rows_per_s": crossing(arrays, nodes),
                "alpha": self.alpha,
            }
            why = "pairs placed together in falling order of traffic"
            reasons.append(Reason(arrays.topology.name, ReasonCode.PLACED_BY_TRAFFIC, why, numbers))
        return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))

    def _place(self, cluster: ClusterArrays, arrays: TopologyArrays, load: Real, held_mhz: Real) -> Whole:
        nowhere = np.full(arrays.size, -1, dtype=np.int64)
        slots = OpenSlots(cluster, arrays)
        nodes = self._nodes(slots, cluster, held_mhz)
        seats = np.sort(slots.seats)[::-1]
        workers = min(wanted_workers(arrays, cluster), int(slots.count[nodes].sum()))
        if workers == 0:
            return nowhere
        left_mhz = self._bounds_mhz(cluster) - held_mhz
        group, traffic = self._into_workers(arrays, load, workers, seats, float(left_mhz[nodes].max()))
        on_node = self._onto_nodes(group, traffic, load, nodes, slots, cluster, held_mhz)
        on_node = _matched_nodes(cluster, arrays, group, on_node, load, slots, left_mhz)
        where = _into_slots(cluster, arrays, group, on_node, slots)
        if cluster.shared:
            _seat_the_rest(cluster, arrays, where, [s for n in nodes for s in slots.of(n)], load, left_mhz)
        return where

    def _bounds_mhz(self, cluster: ClusterArrays) -> Real:
        """B of each node, in MHz."""
        found: Real = cluster.cpu_pct * cluster.clock_mhz / 100.0 * (self.bound_pct / 100.0)
        return found

    def _nodes(self, slots: OpenSlots, cluster: ClusterArrays, held_mhz: Real) -> list[int]:
        """The nodes to use; if not all, those with most capacity left."""
        nodes = slots.nodes
        if self.nodes_to_use is None or self.nodes_to_use >= len(nodes):
            return nodes
        left = self._bounds_mhz(cluster) - held_mhz
        return sorted(sorted(nodes, key=lambda n: (-left[n], n))[: self.nodes_to_use])

    def _into_workers(
        self, arrays: TopologyArrays, load: Real, workers: int, seats: Whole, capacity: float
    ) -> tuple[Whole, Real]:
        """Phase 1: the worker of each instance (-1: none), and the traffic between workers."""
        room = seats[:workers]
        most = np.minimum(room, most_per_worker(arrays.size, workers, self.alpha))
        if most.sum() < arrays.size:
            most = room  # seats are a hard limit, M is not
        bins = Bins(load, most, np.full(workers, capacity), np.zeros(workers), links_of(arrays))
        bins.take_pairs(pairs_of(arrays, load))
        bins.place_rest()
        bins.fill_empty()
        group = np.maximum(bins.home, -1)
        traffic = np.zeros((workers, workers))
        placed = np.flatnonzero(group >= 0)
        order = placed[np.argsort(group[placed], kind="stable")]
        if len(order):
            starts = np.searchsorted(group[order], np.unique(group[order]))
            traffic[:, np.unique(group[order])] = np.add.reduceat(bins.affinity[:, order], starts, axis=1)
        np.fill_diagonal(traffic, 0.0)
        return group, traffic

    def _onto_nodes(
        self,
        group: Whole,
        traffic: Real,
        load: Real,
        nodes: list[int],
        slots: OpenSlots,
        cluster: ClusterArrays,
        held_mhz: Real,
    ) -> Whole:
        """Phase 2: the node of each worker (-1: none)."""
        workers = len(traffic)
        used = np.bincount(group[group >= 0], minlength=workers) > 0
        weight = summed(group[group >= 0], load[group >= 0], workers)
        open_slots = slots.count[nodes]
        most = np.minimum(open_slots, math.ceil(workers / len(nodes))) if self.spread else open_slots
        if most.sum() < workers:
            most = open_slots
        here = np.array(nodes)
        capacity = self._bounds_mhz(cluster)[here]
        all_workers = slice(0, workers)
        bins = Bins(weight, most, capacity, held_mhz[here], lambda w: [(all_workers, traffic[w])])
        i, j = np.nonzero(np.triu(traffic, 1) > 0)
        bins.take_pairs(falling([OperatorPairs(i.astype(np.int32), j.astype(np.int32), traffic[i, j])]))
        bins.place_rest()
        home = np.maximum(bins.home, -1)
        return np.where((home >= 0) & used, here[home], -1)


def load_mhz(cluster: ClusterArrays, arrays: TopologyArrays) -> Real:
    """L: CPU share x clock of the core it is measured on; an instance that does not run counts at the mean clock."""
    here = np.where(arrays.present >= 0, cluster.clock_mhz[cluster.slot_node[arrays.present]], cluster.clock_mhz.mean())
    found: Real = arrays.cpu_pct / 100.0 * here
    return found


def _matched_nodes(
    cluster: ClusterArrays,
    arrays: TopologyArrays,
    group: Whole,
    on_node: Whole,
    load: Real,
    slots: OpenSlots,
    left_mhz: Real,
) -> Whole:
    """Swap whole nodes for those that already hold most of the same instances, if they have enough room."""
    present = np.where(arrays.present >= 0, cluster.slot_node[arrays.present], -1)
    target = np.where(group >= 0, on_node[group], -1)
    if not ((present >= 0) & (target >= 0)).any():
        return on_node
    bins, nodes = np.unique(on_node[on_node >= 0]), np.array(slots.nodes)
    worth = np.zeros((len(bins), len(nodes)))
    both = (target >= 0) & np.isin(present, nodes)
    np.add.at(worth, (np.searchsorted(bins, target[both]), np.searchsorted(nodes, present[both])), 1.0)
    weight = np.array([load[target == n].sum() for n in bins])
    workers = np.array([(on_node == n).sum() for n in bins])
    worth[
        (weight[:, None] > left_mhz[nodes][None, :] + 1e-6) | (workers[:, None] > slots.count[nodes][None, :])
    ] = -np.inf
    found = assign(worth)
    if (found < 0).any():
        return on_node
    new = dict(zip(bins.tolist(), nodes[found].tolist(), strict=True))
    return np.array([new.get(n, -1) for n in on_node.tolist()], dtype=np.int64)


def _into_slots(
    cluster: ClusterArrays, arrays: TopologyArrays, group: Whole, on_node: Whole, slots: OpenSlots
) -> Whole:
    """Assign workers to the slots of their nodes, each to the slot that already holds most of its instances."""
    where = np.full(arrays.size, -1, dtype=np.int64)
    members: dict[int, list[int]] = defaultdict(list)
    for i, g in enumerate(group.tolist()):
        if g >= 0 and on_node[g] >= 0:
            members[int(on_node[g])].append(i)
    for node, items in members.items():
        mine = np.unique(group[items])
        local = np.searchsorted(mine, group[items])
        places = slots.of(node)
        size = np.bincount(local, minlength=len(mine))
        place = keep_where_possible(local, places, arrays.present[items], size, cluster.seats_left[places])
        where[items] = place[local]
    return where


def _seat_the_rest(
    cluster: ClusterArrays, arrays: TopologyArrays, where: Whole, slots: list[int], load: Real, left_mhz: Real
) -> None:
    """With unequal seats a group may fit into no single worker: its instances take the free seats one by one."""
    there = where >= 0
    taken = np.bincount(where[there], minlength=len(cluster.seats_left))
    left = left_mhz - summed(cluster.slot_node[where[there]], load[there], len(cluster.names))
    for i in np.flatnonzero(~there).tolist():
        present = int(arrays.present[i])
        for slot in [present, *slots] if present in slots else slots:
            node = int(cluster.slot_node[slot])
            if taken[slot] < cluster.seats_left[slot] and load[i] <= left[node] + HAIR:
                where[i] = slot
                taken[slot] += 1
                left[node] -= load[i]
                break
