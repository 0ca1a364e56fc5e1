"""Thrifty, Barograph's own placer: little traffic between nodes, few nodes, few moves.

It starts from the present placement. Instances must move if they have lost their node or no longer fit. A topology that
does not run yet is placed node by node and then improved by local search. Optional moves are made if they are worth the
pause they cost (``worth.py``): to empty a node, or to save a part of a topology's traffic between nodes. If something
has to move anyway, optional moves add no further pause. Moving a stateful instance costs more the larger its state.
CPU, memory, heaps and seats are never overcommitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot, Topology
from barograph.model.checks import require_number
from barograph.place import PlaceDecision
from barograph.place.adaptive.fill import fill
from barograph.place.adaptive.optional_moves import empty_nodes, improve
from barograph.place.adaptive.polish import polish, polish_together
from barograph.place.adaptive.repair import make_room, place_near
from barograph.place.adaptive.worth import Worth, hops_of, unchanged
from barograph.place.support.cluster_arrays import ClusterArrays, to_placement
from barograph.place.support.cost import crossing
from barograph.place.support.draft import DraftPlacement
from barograph.place.support.topology_arrays import topology_arrays
from barograph.place.support.wanted import refused

TOGETHER_UP_TO = 64  # instances in total, up to which all topologies are solved as one problem from several starts


@dataclass(frozen=True, slots=True)
class Chosen:
    """Optional moves, nodes they emptied, and for how long nothing had changed before them."""

    moves: int = 0
    emptied: int = 0
    lasted_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Thrifty:
    """The Placer. budget: total weight of optional moves in one decision (a stateless move weighs 1).

    worth_pct: how much of a topology's traffic between nodes these moves must save together.
    pause_s, delayed_part, hop_s, known_s: cost of a pause and value of a saved hop (``worth.py``).
    pack: whether nodes are emptied; if empty nodes are never released, that saves nothing.
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
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        draft = DraftPlacement(cluster, topologies)
        fresh = [c for c, where in enumerate(draft.where) if (where < 0).all()]
        forced = sum(int((where < 0).sum()) for c, where in enumerate(draft.where) if c not in fresh)
        left: dict[int, list[int]] = {}
        for c in range(len(topologies)):
            left[c] = fill(draft, c) if c in fresh else place_near(draft, c)
        for c, waiting in left.items():
            left[c] = [i for i in waiting if not make_room(draft, c, i)]
        if len(fresh) == len(topologies) and sum(arrays.size for arrays in topologies) <= TOGETHER_UP_TO:
            polish_together(draft)
        else:
            polish(draft, fresh)
        if fresh:
            self._settle(draft, fresh)
        chosen = Chosen() if fresh else self._by_choice(history, now, draft, forced > 0)
        for c in range(len(topologies)):
            place_near(draft, c)  # instances that found no place before may find one now that others have moved
        return self._decision(draft, forced, chosen)

    def _settle(self, draft: DraftPlacement, fresh: list[int]) -> None:
        """Improve new topologies now, while they do not run yet and moves cost nothing."""
        empty_nodes(draft, fresh, np.inf)
        if sum(draft.topologies[c].size for c in fresh) <= TOGETHER_UP_TO:
            for budget in (np.inf, self.budget):
                for c in fresh:
                    improve(draft, c, budget, self.worth_pct)
                empty_nodes(draft, fresh, np.inf)

    def _by_choice(self, history: Sequence[Cycle], now: Snapshot, draft: DraftPlacement, forced: bool) -> "Chosen":
        """Optional moves. If other instances must move anyway, they add no further pause."""
        worth = self._worth()
        stretches = [unchanged(history, now, arrays.topology.name) for arrays in draft.topologies]
        before = [where.copy() for where in draft.where]
        used = int((draft.population > 0).sum())
        hurt = [_pause_misses(arrays.topology, self.pause_s) for arrays in draft.topologies]
        free = [c for c, stretch in enumerate(stretches) if forced or worth.may_choose(stretch, rarely=hurt[c])]
        left = self.budget
        if self.pack and free:
            left -= empty_nodes(draft, free, left)
        emptied = used - int((draft.population > 0).sum())
        for c in () if forced else free:
            arrays = draft.topologies[c]
            enough = partial(worth.saves_enough, hops=hops_of(arrays.topology), lasted_s=stretches[c].seconds)
            left = improve(draft, c, left, self.worth_pct, (lambda _: True) if emptied else enough)
        moves = sum(int((a != b).sum()) for a, b in zip(before, draft.where, strict=True))
        return Chosen(moves, emptied, min((stretches[c].seconds for c in free), default=0.0))

    def _decision(self, draft: DraftPlacement, forced: int, chosen: "Chosen") -> PlaceDecision:
        cluster = draft.cluster
        unplaced, reasons = list[Refusal](), list[Reason]()
        for c, arrays in enumerate(draft.topologies):
            for i in np.flatnonzero(draft.where[c] < 0).tolist():
                cpu, memory = float(arrays.cpu_pct[i]), float(arrays.memory_mb[i])
                why = f"no node {arrays.topology.name} may use has {cpu:g} % CPU, {memory:g} MB and a seat left"
                unplaced += refused([arrays.instances[i]], why)
            numbers = {
                "instances": float(arrays.size),
                "moves": float(((draft.where[c] != arrays.present) & (arrays.present >= 0)).sum()),
                "nodes": float(len(set(draft.nodes(c).tolist()) - {-1})),
                "inter_node_rows_per_s": crossing(arrays, draft.nodes(c)),
            }
            reasons.append(
                Reason(
                    arrays.topology.name,
                    ReasonCode.MOVED_LITTLE,
                    "few moves, little traffic between few nodes",
                    numbers,
                )
            )
        numbers = {
            "had_to_move": float(forced),
            "moved_by_choice": float(chosen.moves),
            "nodes": float((draft.population > 0).sum()),
        }
        code, why = ReasonCode.FORCED_MOVES, "forced moves come first"
        if chosen.moves and not forced:
            numbers |= {
                "nodes_emptied": float(chosen.emptied),
                "pause_s": self.pause_s,
                "lasted_s": chosen.lasted_s,
                "pause_per_cent_of_time": 100.0 * self.pause_s / max(chosen.lasted_s, self.pause_s),
            }
            code = ReasonCode.NODES_FREED if chosen.emptied else ReasonCode.TRAFFIC_SAVED
            why = "worth its pause: " + ("nodes are freed" if chosen.emptied else "less traffic between nodes")
        reasons.append(Reason("cluster", code, why, numbers))
        parts = [(arrays.instances, draft.where[c]) for c, arrays in enumerate(draft.topologies)]
        return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))


def _pause_misses(topology: Topology, pause_s: float) -> bool:
    """Whether one pause is longer than the p99 that the topology should have."""
    return topology.target_p99_ms is not None and topology.target_p99_ms < 1e3 * pause_s
