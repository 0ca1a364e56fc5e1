"""T-Storm (Xu et al. 2014): instances by falling traffic, each to the node that adds least inter-node traffic.

At most one worker per node and topology, node load within capacity, at most gamma * ceil(instances / nodes) instances
per node; ties to the least loaded node. It starts from nothing and knows no memory.

A schedule is computed when something has no place, when traffic is first known, and then every 300 s, as often as its
authors let the schedule generator run. In between nothing moves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.model.checks import require_positive
from barograph.place import PlaceDecision
from barograph.place.board import HAIR, Board, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.measure import crossing
from barograph.place.nearness import Nearness, total_traffic
from barograph.place.period import COMPUTED_AT, waiting
from barograph.place.spread import OpenSlots
from barograph.place.wanted import kept_as_is, measured, refused


@dataclass(frozen=True, slots=True)
class TStorm:
    """The Placer. gamma above 1 lets nodes hold more, so fewer of them are used. generate_s: see above."""

    gamma: float = 1.0
    generate_s: float = 300.0

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma)
        require_positive("generate_s", self.generate_s)

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        board = Board(now, allotment)
        everyone = crews(now, demand, board)
        wait = waiting(history, now, self.generate_s)
        if wait is not None and all((crew.present >= 0).all() for crew in everyone):
            return kept_as_is(everyone, board, wait)
        instances = self._instances_that_share(board, everyone)
        count = np.zeros(len(board.names), dtype=np.int64)
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for crew in everyone:
            nodes = board.allowed(crew.topology.name)
            most = math.floor(self.gamma * math.ceil(instances[crew.number] / max(1, len(nodes))) + HAIR)
            where = self._place(board, crew, nodes, count, most)
            parts.append((crew.instances, where))
            left = [i for i, s in zip(crew.instances, where.tolist(), strict=True) if s < 0]
            unplaced += refused(left, f"no node has capacity, a slot and fewer than {most} instances")
            on_node = np.where(where >= 0, board.slot_node[where], -1)
            numbers = {"most_per_node": float(most), "inter_node_rows_per_s": crossing(crew, on_node)}
            reasons.append(Reason(crew.topology.name, "each where it adds least inter-node traffic", numbers))
        if any(measured(crew) for crew in everyone):
            reasons.append(Reason("cluster", "a new schedule is taken", {COMPUTED_AT: now.at_s}))
        return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))

    @staticmethod
    def _instances_that_share(board: Board, everyone: list[Crew]) -> list[int]:
        """For each topology, how many instances there are on its nodes, those of others that share them included."""
        nodes = [frozenset(board.allowed(c.topology.name).tolist()) for c in everyone]
        return [sum(c.size for c, n in zip(everyone, nodes, strict=True) if n == mine) for mine in nodes]

    def _place(self, board: Board, crew: Crew, nodes: Whole, count: Whole, most: int) -> Whole:
        where = np.full(crew.size, -1, dtype=np.int64)
        slots = OpenSlots(board, crew)
        worker = np.full(len(board.names), -1, dtype=np.int64)
        open_node = np.zeros(len(board.names), dtype=np.bool_)
        open_node[nodes] = slots.count[nodes] > 0
        near = Nearness(crew, len(board.names))
        for i in np.argsort(-total_traffic(crew), kind="stable").tolist():
            cpu = float(crew.cpu_pct[i])
            fits = open_node & (board.cpu_left + HAIR >= cpu) & (count < most)
            if not fits.any():
                continue
            toward = np.where(fits, near.toward(i), -1.0)
            best = fits & (toward >= toward.max() * (1 - 1e-9))
            load = board.cpu_pct - board.cpu_left
            node = int(np.where(best, load, np.inf).argmin())
            if worker[node] < 0:
                worker[node] = slots.of(node)[0]
            slot = int(worker[node])
            where[i] = slot
            board.take(slot, crew.number, cpu)
            count[node] += 1
            near.put(i, node)
            open_node[node] = board.seats_left[slot] > 0
        return where
