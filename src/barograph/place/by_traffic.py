"""A schedule by measured traffic (Aniello et al., 3.2). ``online`` decides when it is computed and whether it is taken.

Per topology: instances into workers, then workers onto nodes, pair by pair in falling order of traffic. Bounds: M
instances per worker, slots per node, load within the node's bound B, exactly min(W, E) workers. It knows no memory.
It starts from nothing; before the result is compared with the present, its nodes and workers are matched to those they
resemble most.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from barograph.model import Allotment, Demand, Reason, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.board import HAIR, Board, Real, Whole, summed, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.even import book
from barograph.place.links import links_of, pairs_of
from barograph.place.match import assign
from barograph.place.measure import crossing
from barograph.place.pairing import Bins, Part, falling
from barograph.place.spread import OpenSlots, keep_where_possible, most_per_worker
from barograph.place.wanted import kept_as_is, refused, too_few_slots, wanted_workers

MOST_TURNS = 8


@dataclass(frozen=True, slots=True)
class ByTraffic:
    """alpha: from balanced (0) to lumped (1) workers. bound_pct: B, the share of a node's CPU its instances may need.

    nodes_to_use: how many nodes a topology is spread over, None for all it may use. spread: whether a node takes at
    most ceil(workers / nodes) of its workers; without it everything is stacked on one node when bounds are loose.
    """

    alpha: float = 0.0
    nodes_to_use: int | None = None
    spread: bool = True
    bound_pct: float = 100.0

    def schedule(self, now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        decision = self._once(now, demand, allotment)
        # A group finds a worker that holds it whole only where some of it runs. So from an empty placement the next
        # schedules would still move instances; the first one is where they settle.
        for _ in range(MOST_TURNS if now.shared_workers and not now.placement else 0):
            again = self._once(replace(now, placement=decision.placement), demand, allotment)
            if again.unplaced or again.placement == decision.placement:
                break
            decision = again
        return decision

    def _once(self, now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        board = Board(now, allotment)
        everyone = crews(now, demand, board)
        if missing := too_few_slots(board, everyone):
            return kept_as_is(everyone, board, Reason("cluster", missing))
        held_mhz = np.zeros(len(board.names))
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for crew in everyone:
            load = load_mhz(board, crew)
            where = self._place(board, crew, load, held_mhz)
            book(board, crew, where)
            placed = where >= 0
            np.add.at(held_mhz, board.slot_node[where[placed]], load[placed])
            parts.append((crew.instances, where))
            left = [i for i, s in zip(crew.instances, where.tolist(), strict=True) if s < 0]
            unplaced += refused(left, f"no worker of {crew.topology.name} fits a node with capacity and a slot left")
            nodes = np.where(placed, board.slot_node[where], -1)
            numbers = {
                "workers": float(len(set(where[placed].tolist()))),
                "inter_node_rows_per_s": crossing(crew, nodes),
                "alpha": self.alpha,
            }
            reasons.append(Reason(crew.topology.name, "pairs together by falling traffic", numbers))
        return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))

    def _place(self, board: Board, crew: Crew, load: Real, held_mhz: Real) -> Whole:
        nowhere = np.full(crew.size, -1, dtype=np.int64)
        slots = OpenSlots(board, crew)
        nodes = self._nodes(slots, board, held_mhz)
        seats = np.sort(slots.seats)[::-1]
        workers = min(wanted_workers(crew, board), int(slots.count[nodes].sum()))
        if workers == 0:
            return nowhere
        left_mhz = self._bounds_mhz(board) - held_mhz
        group, traffic = self._into_workers(crew, load, workers, seats, float(left_mhz[nodes].max()))
        on_node = self._onto_nodes(group, traffic, load, nodes, slots, board, held_mhz)
        on_node = _matched_nodes(board, crew, group, on_node, load, slots, left_mhz)
        where = _into_slots(board, crew, group, on_node, slots)
        if board.shared:
            _seat_the_rest(board, crew, where, [s for n in nodes for s in slots.of(n)], load, left_mhz)
        return where

    def _bounds_mhz(self, board: Board) -> Real:
        """B of each node, in MHz."""
        found: Real = board.cpu_pct * board.clock_mhz / 100.0 * (self.bound_pct / 100.0)
        return found

    def _nodes(self, slots: OpenSlots, board: Board, held_mhz: Real) -> list[int]:
        """The nodes to use; if not all, those with most capacity left."""
        nodes = slots.nodes
        if self.nodes_to_use is None or self.nodes_to_use >= len(nodes):
            return nodes
        left = self._bounds_mhz(board) - held_mhz
        return sorted(sorted(nodes, key=lambda n: (-left[n], n))[: self.nodes_to_use])

    def _into_workers(self, crew: Crew, load: Real, workers: int, seats: Whole, capacity: float) -> tuple[Whole, Real]:
        """Phase 1: the worker of each instance (-1: none), and the traffic between workers."""
        room = seats[:workers]
        most = np.minimum(room, most_per_worker(crew.size, workers, self.alpha))
        if most.sum() < crew.size:
            most = room  # seats are hard, M is a wish
        bins = Bins(load, most, np.full(workers, capacity), np.zeros(workers), links_of(crew))
        bins.take_pairs(pairs_of(crew, load))
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
        board: Board,
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
        capacity = self._bounds_mhz(board)[here]
        everyone = slice(0, workers)
        bins = Bins(weight, most, capacity, held_mhz[here], lambda w: [(everyone, traffic[w])])
        i, j = np.nonzero(np.triu(traffic, 1) > 0)
        bins.take_pairs(falling([Part(i.astype(np.int32), j.astype(np.int32), traffic[i, j])]))
        bins.place_rest()
        home = np.maximum(bins.home, -1)
        return np.where((home >= 0) & used, here[home], -1)


def load_mhz(board: Board, crew: Crew) -> Real:
    """L: CPU share x clock of the core it is measured on; an instance that runs nowhere counts at the mean clock."""
    here = np.where(crew.present >= 0, board.clock_mhz[board.slot_node[crew.present]], board.clock_mhz.mean())
    found: Real = crew.cpu_pct / 100.0 * here
    return found


def _matched_nodes(
    board: Board, crew: Crew, group: Whole, on_node: Whole, load: Real, slots: OpenSlots, left_mhz: Real
) -> Whole:
    """Swap whole nodes for those that hold most of the same instances already, where these have the room."""
    present = np.where(crew.present >= 0, board.slot_node[crew.present], -1)
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


def _into_slots(board: Board, crew: Crew, group: Whole, on_node: Whole, slots: OpenSlots) -> Whole:
    """Workers into their nodes' slots, each where most of its instances are already."""
    where = np.full(crew.size, -1, dtype=np.int64)
    members: dict[int, list[int]] = defaultdict(list)
    for i, g in enumerate(group.tolist()):
        if g >= 0 and on_node[g] >= 0:
            members[int(on_node[g])].append(i)
    for node, items in members.items():
        mine = np.unique(group[items])
        local = np.searchsorted(mine, group[items])
        places = slots.of(node)
        size = np.bincount(local, minlength=len(mine))
        place = keep_where_possible(local, places, crew.present[items], size, board.seats_left[places])
        where[items] = place[local]
    return where


def _seat_the_rest(board: Board, crew: Crew, where: Whole, slots: list[int], load: Real, left_mhz: Real) -> None:
    """Unequal seats may leave a group without a worker that holds it whole: its instances take what seats there are."""
    there = where >= 0
    taken = np.bincount(where[there], minlength=len(board.seats_left))
    left = left_mhz - summed(board.slot_node[where[there]], load[there], len(board.names))
    for i in np.flatnonzero(~there).tolist():
        present = int(crew.present[i])
        for slot in [present, *slots] if present in slots else slots:
            node = int(board.slot_node[slot])
            if taken[slot] < board.seats_left[slot] and load[i] <= left[node] + HAIR:
                where[i] = slot
                taken[slot] += 1
                left[node] -= load[i]
                break
