"""Thrifty, ours: thrifty with traffic between nodes, with nodes, and with moves. Capacity is true throughout.

It starts from what runs. Only what must move moves: what has lost its node, and what no longer fits. A topology that
runs nowhere yet is grown node by node and then improved by local search. When nothing had to move, a few moves may be
made by choice: to empty a node that others can take over, or where they save a worthwhile part of a topology's traffic
between nodes; a stateful instance weighs more the larger its state. CPU, memory, heaps and seats are never
overcommitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.model.checks import require_number
from barograph.place import PlaceDecision
from barograph.place.board import Board, to_placement
from barograph.place.choice import empty_nodes, improve
from barograph.place.crew import crews
from barograph.place.fill import fill
from barograph.place.layout import Layout
from barograph.place.measure import crossing
from barograph.place.polish import polish, polish_together
from barograph.place.repair import make_room, place_near
from barograph.place.wanted import refused

TOGETHER_UP_TO = 64  # instances in all, up to which all topologies are solved as one puzzle from several starts


@dataclass(frozen=True, slots=True)
class Thrifty:
    """The Placer. budget: what moves made by choice may weigh in one decision (a stateless move weighs 1).

    worth_pct: how much of a topology's traffic between nodes such moves must save together.
    """

    budget: float = 16.0
    worth_pct: float = 10.0

    def __post_init__(self) -> None:
        require_number("budget", self.budget)
        require_number("worth_pct", self.worth_pct)

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG002
        board = Board(now, allotment)
        everyone = crews(now, demand, board)
        layout = Layout(board, everyone)
        fresh = [c for c, where in enumerate(layout.where) if (where < 0).all()]
        forced = sum(int((where < 0).sum()) for c, where in enumerate(layout.where) if c not in fresh)
        left: dict[int, list[int]] = {}
        for c in range(len(everyone)):
            left[c] = fill(layout, c) if c in fresh else place_near(layout, c)
        for c, waiting in left.items():
            left[c] = [i for i in waiting if not make_room(layout, c, i)]
        if len(fresh) == len(everyone) and sum(crew.size for crew in everyone) <= TOGETHER_UP_TO:
            polish_together(layout)
        else:
            polish(layout, fresh)
        if fresh:
            self._settle(layout, fresh)
        chosen = self._by_choice(layout) if not fresh and forced == 0 else 0
        for c in range(len(everyone)):
            place_near(layout, c)  # who found nothing before may do so now that others have moved
        return self._decision(layout, forced, chosen)

    def _settle(self, layout: Layout, fresh: list[int]) -> None:
        """What would be worth moving in the next cycle is moved now, while it costs nothing."""
        empty_nodes(layout, fresh, np.inf)
        if sum(layout.crews[c].size for c in fresh) <= TOGETHER_UP_TO:
            for budget in (np.inf, self.budget):
                improve(layout, fresh, budget, self.worth_pct)
                empty_nodes(layout, fresh, np.inf)

    def _by_choice(self, layout: Layout) -> int:
        """How many instances were moved though nothing had to."""
        everybody = range(len(layout.crews))
        before = [where.copy() for where in layout.where]
        left = self.budget - empty_nodes(layout, everybody, self.budget)
        improve(layout, everybody, left, self.worth_pct)
        return sum(int((a != b).sum()) for a, b in zip(before, layout.where, strict=True))

    def _decision(self, layout: Layout, forced: int, chosen: int) -> PlaceDecision:
        board = layout.board
        unplaced, reasons = list[Refusal](), list[Reason]()
        for c, crew in enumerate(layout.crews):
            for i in np.flatnonzero(layout.where[c] < 0).tolist():
                cpu, memory = float(crew.cpu_pct[i]), float(crew.memory_mb[i])
                why = f"no node {crew.topology.name} may use has {cpu:g} % CPU, {memory:g} MB and a seat left"
                unplaced += refused([crew.instances[i]], why)
            numbers = {
                "instances": float(crew.size),
                "moves": float(((layout.where[c] != crew.present) & (crew.present >= 0)).sum()),
                "nodes": float(len(set(layout.nodes(c).tolist()) - {-1})),
                "inter_node_rows_per_s": crossing(crew, layout.nodes(c)),
            }
            reasons.append(Reason(crew.topology.name, "few moves, little traffic between few nodes", numbers))
        numbers = {
            "had_to_move": float(forced),
            "moved_by_choice": float(chosen),
            "nodes": float((layout.population > 0).sum()),
        }
        reasons.append(Reason("cluster", "what must move moves first", numbers))
        parts = [(crew.instances, layout.where[c]) for c, crew in enumerate(layout.crews)]
        return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))
