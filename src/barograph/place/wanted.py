"""How many workers a topology runs on, whether it was measured, and the words for what has no place or stays."""

import math

import numpy as np

from barograph.model import Instance, Reason, Refusal
from barograph.place import PlaceDecision
from barograph.place.board import Board, to_placement
from barograph.place.crew import Crew


def wanted_workers(crew: Crew, board: Board) -> int:
    """min(W, E). W as the topology asks; else by its heap limit; else one for each node it may use.

    Shared workers (Spark) exist already and cost nothing more, so W is all of them unless it asks for fewer.
    """
    topology = crew.topology
    nodes = board.allowed(topology.name)
    if topology.workers is not None:
        wanted = topology.workers
    elif board.shared:
        wanted = int((board.first[nodes + 1] - board.first[nodes]).sum())
    elif topology.max_heap_mb:
        wanted = math.ceil(float(crew.memory_mb.sum()) / topology.max_heap_mb)
    else:
        wanted = len(nodes)
    return max(1, min(wanted, crew.size))


def refused(instances: list[Instance], reason: str) -> list[Refusal]:
    return [Refusal(str(instance), reason) for instance in instances]


def too_few_slots(board: Board, everyone: list[Crew]) -> str:
    """Why no schedule of this kind can be, or an empty string: it needs sum of S >= sum of min(W, E)."""
    if board.shared:
        return "" if len(board.slot_node) else "no worker is alive"
    needed = sum(wanted_workers(crew, board) for crew in everyone)
    there = len(board.slot_node)
    if needed <= there:
        return ""
    return f"the topologies need {needed} slots and there are {there}: {needed - there} are missing"


def kept_as_is(everyone: list[Crew], board: Board, reason: Reason) -> PlaceDecision:
    """What runs stays where it is, what does not run is named."""
    parts = [(crew.instances, crew.present) for crew in everyone]
    left = [i for crew in everyone for i, s in zip(crew.instances, crew.present.tolist(), strict=True) if s < 0]
    return PlaceDecision(to_placement(board, parts), tuple(refused(left, reason.why)), (reason,))


def measured(crew: Crew) -> bool:
    """Whether load or traffic of the topology is known."""
    return bool(crew.cpu_pct.any()) or any(bool(np.any(block.rows)) for block in crew.blocks)
