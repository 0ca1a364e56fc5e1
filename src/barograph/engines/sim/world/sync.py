"""How workers learn of a new placement: the order is pushed to all of them at once, or each asks in its own cycle.

In N-Storm a supervisor reads the assignment from Zookeeper every T_S seconds and writes it to its node's store, and a
worker reads that store every T_W seconds. The cycles of different nodes and workers are not in step, so the workers
that a change concerns learn of it one after the other. "The stopping time of the migrated Executor" is then the time
between the first and the last of them. Barograph's orders are pushed: there is no cycle and nothing to wait for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from barograph.model import Slot
from barograph.model.checks import require_number


@dataclass(frozen=True, slots=True)
class Sync:
    """node_s: T_S, how often a node asks. worker_s: T_W, how often a worker asks its node."""

    node_s: float
    worker_s: float

    def __post_init__(self) -> None:
        require_number("sync.node_s", self.node_s)
        require_number("sync.worker_s", self.worker_s)


@dataclass(frozen=True, slots=True)
class Heard:
    """When the first and the last of the workers concerned learn of an order, in seconds after it."""

    first_s: float = 0.0
    last_s: float = 0.0


def heard(sync: Sync | None, slots: Iterable[Slot], chance: np.random.Generator) -> Heard:
    """Cycles drift, so that each order finds every node and every worker at another point of its cycle.

    With sync None, or without a worker that is concerned, the order is known at once.
    """
    concerned = sorted(set(slots))
    if sync is None or not concerned:
        return Heard()
    nodes = {node: sync.node_s * chance.random() for node in sorted({s.node for s in concerned})}
    waits = [nodes[slot.node] + sync.worker_s * chance.random() for slot in concerned]
    return Heard(min(waits), max(waits))
