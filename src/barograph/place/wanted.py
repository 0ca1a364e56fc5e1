"""How many workers a topology runs on, and the words for what found no place. Shared by the placers."""

import math

from barograph.model import Instance, Refusal
from barograph.place.board import Board
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
