"""Offline: placement by the shape of the topology alone (Aniello et al., 3.1). It knows no load, CPU or traffic.

Components in topological order; instances go to workers that hold instances of components feeding them. From component
i > floor(beta * C) on, empty workers must be used. Workers go to nodes round-robin; before the result is compared with
the present, workers are matched to the slots they resemble most.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.model.checks import require
from barograph.place import PlaceDecision
from barograph.place.board import Board, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.even import book
from barograph.place.spread import OpenSlots, keep_where_possible, most_per_worker
from barograph.place.wanted import kept_as_is, refused, too_few_slots, wanted_workers


@dataclass(frozen=True, slots=True)
class Offline:
    """The Placer. alpha: balanced (0) to lumped (1). beta: from which share of components on empty workers are used."""

    alpha: float = 0.0
    beta: float = 0.5

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, f"alpha must be between 0 and 1, not {self.alpha}")
        require(0 <= self.beta <= 1, f"beta must be between 0 and 1, not {self.beta}")

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG002
        board = Board(now, allotment)
        everyone = crews(now, demand, board)
        if missing := too_few_slots(board, everyone):
            return kept_as_is(everyone, board, Reason("cluster", missing))
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for crew in everyone:
            where, most = self._place(board, crew)
            book(board, crew, where)
            parts.append((crew.instances, where))
            left = [i for i, s in zip(crew.instances, where.tolist(), strict=True) if s < 0]
            unplaced += refused(left, f"no seat is free in any slot {crew.topology.name} may use")
            workers = len(set(where[where >= 0].tolist()))
            numbers = {
                "workers": float(workers),
                "most_per_worker": float(most),
                "alpha": self.alpha,
                "beta": self.beta,
            }
            reasons.append(Reason(crew.topology.name, "next to the components that feed them", numbers))
        return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))

    def _place(self, board: Board, crew: Crew) -> tuple[Whole, int]:
        slots = OpenSlots(board, crew).in_rounds(wanted_workers(crew, board))
        if not slots:
            return np.full(crew.size, -1, dtype=np.int64), 0
        seats = board.seats_left[slots]
        most = most_per_worker(crew.size, min(len(slots), crew.size), self.alpha)
        room = np.minimum(seats, most)
        if room.sum() < crew.size:
            room = seats.copy()  # seats are hard, M is a wish
        group = group_by_shape(crew, room, self.beta)
        size = np.bincount(group[group >= 0], minlength=len(slots))
        place = keep_where_possible(group, slots, crew.present, size, seats)
        return np.where(group >= 0, place[group], -1), most


def group_by_shape(crew: Crew, room: Whole, beta: float) -> Whole:
    """The worker (0..) of each instance; ``room``: how many each worker takes at most."""
    topology = crew.topology
    order = sorted(topology.order, key=lambda o: not o.source)  # stable: sources first, then topologically
    group = np.full(crew.size, -1, dtype=np.int64)
    count = np.zeros(len(room), dtype=np.int64)
    everyone = np.arange(len(room))
    turn = 0
    for i, operator in enumerate(order, start=1):
        k = crew.operator_position(operator.name)
        mine = range(int(crew.start[k]), int(crew.start[k] + crew.counts[k]))
        parents = [crew.operator_position(p) for p in topology.parents(operator.name)]
        fed = np.unique(group[np.isin(crew.operator_of, parents) & (group >= 0)])
        for instance in mine:
            worker = -1
            if len(fed) == 0:
                worker, turn = _next_in_turn(count, room, turn)
            elif i > math.floor(beta * len(order)) and not count.all():
                worker = _least(count, room, np.flatnonzero(count == 0))
            if worker < 0:
                worker = _least(count, room, fed)
            if worker < 0:
                worker = _least(count, room, everyone)
            if worker >= 0:
                group[instance] = worker
                count[worker] += 1
    _fill_empty(crew, group, count)
    return group


def _next_in_turn(count: Whole, room: Whole, turn: int) -> tuple[int, int]:
    for step in range(len(room)):
        worker = (turn + step) % len(room)
        if count[worker] < room[worker]:
            return worker, worker + 1
    return -1, turn


def _least(count: Whole, room: Whole, among: Whole) -> int:
    """The worker with fewest instances that has room; ties to the lowest index; -1 where none has."""
    may = among[count[among] < room[among]]
    return int(may[count[may].argmin()]) if len(may) else -1


def _fill_empty(crew: Crew, group: Whole, count: Whole) -> None:
    """Each worker still empty gets the instance with fewest neighbours (by the graph) in a worker that has others."""
    linked = np.zeros((len(crew.operators), len(crew.operators)))
    for edge in crew.topology.edges:
        a, b = crew.operator_position(edge.source), crew.operator_position(edge.target)
        linked[a, b] = linked[b, a] = 1.0
    for empty in np.flatnonzero(count == 0).tolist():
        held = np.zeros((len(count), len(crew.operators)))
        np.add.at(held, (group[group >= 0], crew.operator_of[group >= 0]), 1.0)
        ties = (held @ linked)[group, crew.operator_of]
        may = (group >= 0) & (count[group] > 1)
        if not may.any():
            return
        best = int(np.where(may, ties, np.inf).argmin())
        count[int(group[best])] -= 1
        group[best], count[empty] = empty, 1
