"""What a placement costs: rows a second between nodes and between workers, and what it uses."""

from collections.abc import Iterable

import numpy as np

from barograph.model import Allotment, Demand, Placement, Snapshot
from barograph.place.board import Board, Whole
from barograph.place.crew import Crew, crews


def crossing(crew: Crew, group: Whole) -> float:
    """Rows a second between instances of different groups; an instance without a group (-1) counts as elsewhere."""
    total = 0.0
    groups = int(group.max(initial=-1)) + 1
    for block in crew.blocks:
        a, b = group[block.sources], group[block.targets]
        if block.x is not None and block.z is not None:
            x = np.bincount(a[a >= 0], weights=block.x[a >= 0], minlength=groups)
            z = np.bincount(b[b >= 0], weights=block.z[b >= 0], minlength=groups)
            total += float(block.x.sum() * block.z.sum() - x @ z)
        else:
            same = (a[:, None] == b[None, :]) & (a[:, None] >= 0)
            total += float(block.rows[~same].sum()) * block.scale
    return total


def sent_rows_s(crew: Crew) -> float:
    """Rows a second between all instances of a topology, wherever they are."""
    return sum(float(block.rows.sum()) * block.scale for block in crew.blocks)


def nodes_and_slots(board: Board, crew: Crew, placement: Placement) -> tuple[Whole, Whole]:
    """The node and the slot number of each instance, -1 where it has none."""
    slot = np.array([board.number(placement.get(i)) for i in crew.instances], dtype=np.int64)
    return np.where(slot >= 0, board.slot_node[slot], -1), slot


def traffic_between(now: Snapshot, demand: Demand, placement: Placement) -> tuple[float, float]:
    """Rows a second between nodes, and between workers."""
    board = Board(now, Allotment())
    return traffic_of(board, crews(now, demand, board), placement)


def traffic_of(board: Board, everyone: Iterable[Crew], placement: Placement) -> tuple[float, float]:
    nodes = slots = 0.0
    for crew in everyone:
        node, slot = nodes_and_slots(board, crew, placement)
        nodes += crossing(crew, node)
        slots += crossing(crew, slot)
    return nodes, slots
