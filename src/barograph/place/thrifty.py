"""Thrifty, ours: thrifty with traffic between nodes, with nodes, and with moves. Capacity is true throughout.

It starts from what runs. Only what must move moves: what has lost its node, and what no longer fits. A topology that
runs nowhere yet is grown node by node and then improved by local search. More moves are made by choice, where they are
worth the pause they cost (``worth.py``): to empty a node that others can take over, or to save a part of a topology's
traffic between nodes. Where something has to move, the pause is paid for already. A stateful instance weighs more the
larger its state. CPU, memory, heaps and seats are never overcommitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

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
from barograph.place.worth import Worth, hops_of, unchanged

TOGETHER_UP_TO = 64  # instances in all, up to which all topologies are solved as one puzzle from several starts


@dataclass(frozen=True, slots=True)
class Chosen:
    """Moves made by choice, nodes they emptied, and for how long nothing had changed before them."""

    moves: int = 0
    emptied: int = 0
    lasted_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Thrifty:
    """The Placer. budget: what moves made by choice may weigh in one decision (a stateless move weighs 1).

    worth_pct: how much of a topology's traffic between nodes such moves must save together.
    pause_s, delayed_part, hop_s, known_s: what a pause costs and a saved hop is worth (``worth.py``).
    pack: whether nodes are emptied at all; where an empty node is never released, that saves nothing.
    """

    budget: float = 256.0
    worth_pct: float = 10.0
    pause_s: float = 0.7
    delayed_part: float = 0.007
    hop_s: float = 0.001
    known_s: float = 30.0
    pack: bool = True

    def __post_init__(self) -> None:
        require_number("budget", self.budget)
        require_number("worth_pct", self.worth_pct)
        self._worth()

    def _worth(self) -> Worth:
        return Worth(self.pause_s, self.delayed_part, self.hop_s, self.known_s)

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
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
        chosen = Chosen() if fresh else self._by_choice(history, now, layout, forced > 0)
        for c in range(len(everyone)):
            place_near(layout, c)  # who found nothing before may do so now that others have moved
        return self._decision(layout, forced, chosen)

    def _settle(self, layout: Layout, fresh: list[int]) -> None:
        """What would be worth moving in the next cycle is moved now, while it costs nothing."""
        empty_nodes(layout, fresh, np.inf)
        if sum(layout.crews[c].size for c in fresh) <= TOGETHER_UP_TO:
            for budget in (np.inf, self.budget):
                for c in fresh:
                    improve(layout, c, budget, self.worth_pct)
                empty_nodes(layout, fresh, np.inf)

    def _by_choice(self, history: Sequence[Cycle], now: Snapshot, layout: Layout, forced: bool) -> "Chosen":
        """Moves that nothing forces. Where others must move, their pause is paid for already."""
        worth = self._worth()
        stretches = [unchanged(history, now, crew.topology.name) for crew in layout.crews]
        before = [where.copy() for where in layout.where]
        used = int((layout.population > 0).sum())
        free = [c for c, stretch in enumerate(stretches) if forced or worth.may_choose(stretch)]
        left = self.budget
        if self.pack and free:
            left -= empty_nodes(layout, free, left)
        emptied = used - int((layout.population > 0).sum())
        for c in () if forced else free:
            crew = layout.crews[c]
            enough = partial(worth.saves_enough, hops=hops_of(crew.topology), lasted_s=stretches[c].seconds)
            left = improve(layout, c, left, self.worth_pct, (lambda _: True) if emptied else enough)
        moves = sum(int((a != b).sum()) for a, b in zip(before, layout.where, strict=True))
        return Chosen(moves, emptied, min((stretches[c].seconds for c in free), default=0.0))

    def _decision(self, layout: Layout, forced: int, chosen: "Chosen") -> PlaceDecision:
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
            "moved_by_choice": float(chosen.moves),
            "nodes": float((layout.population > 0).sum()),
        }
        why = "what must move moves first"
        if chosen.moves and not forced:
            numbers |= {
                "nodes_emptied": float(chosen.emptied),
                "pause_s": self.pause_s,
                "lasted_s": chosen.lasted_s,
                "pause_per_cent_of_time": 100.0 * self.pause_s / max(chosen.lasted_s, self.pause_s),
            }
            why = "worth its pause: " + ("nodes are freed" if chosen.emptied else "rows stay on their nodes")
        reasons.append(Reason("cluster", why, numbers))
        parts = [(crew.instances, layout.where[c]) for c, crew in enumerate(layout.crews)]
        return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))
