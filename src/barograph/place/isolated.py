"""Isolation (Storm): an isolated topology's workers on machines of its own, the others dealt over the rest by even.

Which machines, and how many workers on each, the allotment says. A share of workers that got no machine starves with
its instances; the shares that did stay. Topologies are served in order of their submission, whatever their level.
"""

from collections.abc import Sequence

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.board import Board, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.even import book, deal_evenly
from barograph.place.spread import OpenSlots, keep_where_possible
from barograph.place.wanted import refused


def isolated(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The Placer of Storm's isolation scheduler."""
    board = Board(now, allotment)
    everyone = crews(now, demand, board, by_level=False)
    for crew in everyone:
        if crew.topology.name not in allotment.workers:
            book(board, crew, crew.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for crew in everyone:
        name = crew.topology.name
        if name in allotment.workers:
            where, why = _on_its_machines(board, crew, allotment)
            book(board, crew, where)
        else:
            where, why = deal_evenly(board, crew)
        parts.append((crew.instances, where))
        unplaced += refused([i for i, s in zip(crew.instances, where.tolist(), strict=True) if s < 0], why)
        numbers = {"machines": float(len(set(board.slot_node[where[where >= 0]].tolist())))}
        reasons.append(Reason(name, "on its machines" if name in allotment.workers else "dealt over the rest", numbers))
    return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))


def _on_its_machines(board: Board, crew: Crew, allotment: Allotment) -> tuple[Whole, str]:
    """Instances over all its workers in rounds; the workers that have a machine are placed."""
    name = crew.topology.name
    slots, open_slots = list[int](), OpenSlots(board, crew)
    for node, count in zip(allotment.nodes.get(name, ()), allotment.workers[name], strict=True):
        slots += open_slots.of(board.node_at[node])[:count]
    workers = max(1, min(crew.size, crew.topology.workers or max(crew.topology.isolate_nodes, len(slots))))
    group = np.arange(crew.size) % workers
    group[group >= len(slots)] = -1
    size = np.bincount(group[group >= 0], minlength=len(slots))[: len(slots)]
    place = keep_where_possible(group, slots, crew.present, size, board.seats_left[slots])
    where = np.where(group >= 0, place[group], -1) if len(slots) else np.full(crew.size, -1, dtype=np.int64)
    return where, f"{workers - len(slots)} of the {workers} workers of {name} found no machine of their own"
