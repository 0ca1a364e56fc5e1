"""Offline: placement by the graph of the topology alone (Aniello et al., 3.1). Load, CPU and traffic are ignored.

Components in topological order; instances go to workers that hold instances of components feeding them. From component
i > floor(beta * C) on, empty workers must be used. Workers go to nodes round-robin; at the end they are matched to the
slots that hold most of the same instances.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.model.checks import require
from barograph.place import PlaceDecision
from barograph.place.even import book
from barograph.place.support.cluster_arrays import ClusterArrays, Whole, to_placement
from barograph.place.support.spread import OpenSlots, keep_where_possible, most_per_worker
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import kept_as_is, refused, too_few_slots, wanted_workers


@dataclass(frozen=True, slots=True)
class Offline:
    """The Placer. alpha: balanced (0) to concentrated (1). beta: part of the components after which empty workers are
    used."""

    alpha: float = 0.0
    beta: float = 0.5

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, f"alpha must be between 0 and 1, not {self.alpha}")
        require(0 <= self.beta <= 1, f"beta must be between 0 and 1, not {self.beta}")

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG002
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        if missing := too_few_slots(cluster, topologies):
            return kept_as_is(topologies, cluster, Reason("cluster", ReasonCode.TOO_FEW_SLOTS, missing))
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for arrays in topologies:
            where, most = self._place(cluster, arrays)
            book(cluster, arrays, where)
            parts.append((arrays.instances, where))
            left = [i for i, s in zip(arrays.instances, where.tolist(), strict=True) if s < 0]
            unplaced += refused(left, f"no seat is free in any slot {arrays.topology.name} may use")
            workers = len(set(where[where >= 0].tolist()))
            numbers = {
                "workers": float(workers),
                "most_per_worker": float(most),
                "alpha": self.alpha,
                "beta": self.beta,
            }
            why = "with the components that feed them"
            reasons.append(Reason(arrays.topology.name, ReasonCode.PLACED_BY_GRAPH, why, numbers))
        return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))

    def _place(self, cluster: ClusterArrays, arrays: TopologyArrays) -> tuple[Whole, int]:
        slots = OpenSlots(cluster, arrays).in_rounds(wanted_workers(arrays, cluster))
        if not slots:
            return np.full(arrays.size, -1, dtype=np.int64), 0
        seats = cluster.seats_left[slots]
        most = most_per_worker(arrays.size, min(len(slots), arrays.size), self.alpha)
        room = np.minimum(seats, most)
        if room.sum() < arrays.size:
            room = seats.copy()  # seats are a hard limit, M is not
        group = group_by_shape(arrays, room, self.beta)
        size = np.bincount(group[group >= 0], minlength=len(slots))
        place = keep_where_possible(group, slots, arrays.present, size, seats)
        return np.where(group >= 0, place[group], -1), most


def group_by_shape(arrays: TopologyArrays, room: Whole, beta: float) -> Whole:
    """The worker (0..) of each instance; ``room``: how many each worker takes at most."""
    topology = arrays.topology
    order = sorted(topology.order, key=lambda o: not o.source)  # stable: sources first, then topologically
    group = np.full(arrays.size, -1, dtype=np.int64)
    count = np.zeros(len(room), dtype=np.int64)
    all_workers = np.arange(len(room))
    turn = 0
    for i, operator in enumerate(order, start=1):
        k = arrays.operator_position(operator.name)
        mine = range(int(arrays.start[k]), int(arrays.start[k] + arrays.counts[k]))
        parents = [arrays.operator_position(p) for p in topology.parents(operator.name)]
        fed = np.unique(group[np.isin(arrays.operator_of, parents) & (group >= 0)])
        for instance in mine:
            worker = -1
            if len(fed) == 0:
                worker, turn = _next_in_turn(count, room, turn)
            elif i > math.floor(beta * len(order)) and not count.all():
                worker = _least(count, room, np.flatnonzero(count == 0))
            if worker < 0:
                worker = _least(count, room, fed)
            if worker < 0:
                worker = _least(count, room, all_workers)
            if worker >= 0:
                group[instance] = worker
                count[worker] += 1
    _fill_empty(arrays, group, count)
    return group


def _next_in_turn(count: Whole, room: Whole, turn: int) -> tuple[int, int]:
    for step in range(len(room)):
        worker = (turn + step) % len(room)
        if count[worker] < room[worker]:
            return worker, worker + 1
    return -1, turn


def _least(count: Whole, room: Whole, among: Whole) -> int:
    """The worker with fewest instances that has room; ties to the lowest index; -1 if none has."""
    may = among[count[among] < room[among]]
    return int(may[count[may].argmin()]) if len(may) else -1


def _fill_empty(arrays: TopologyArrays, group: Whole, count: Whole) -> None:
    """Each worker still empty gets the instance with fewest neighbours (by the graph) in a worker that has others."""
    linked = np.zeros((len(arrays.operators), len(arrays.operators)))
    for edge in arrays.topology.edges:
        a, b = arrays.operator_position(edge.source), arrays.operator_position(edge.target)
        linked[a, b] = linked[b, a] = 1.0
    for empty in np.flatnonzero(count == 0).tolist():
        held = np.zeros((len(count), len(arrays.operators)))
        np.add.at(held, (group[group >= 0], arrays.operator_of[group >= 0]), 1.0)
        ties = (held @ linked)[group, arrays.operator_of]
        may = (group >= 0) & (count[group] > 1)
        if not may.any():
            return
        best = int(np.where(may, ties, np.inf).argmin())
        count[int(group[best])] -= 1
        group[best], count[empty] = empty, 1
