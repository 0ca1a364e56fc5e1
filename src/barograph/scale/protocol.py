"""The interface of a scaler, and what all scalers use: bounds of an operator, limits of an instance."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from barograph.model import Cycle, Demand, Forecast, Operator, OperatorDemand, Snapshot

INSTANCES_PER_CORE = 16


class Scaler(Protocol):
    """Called once a cycle, after the forecast. Says how many instances each operator needs, and the CPU of each.

    The result names every operator of ``now``. A scaler does not place: of nodes it uses capacities only.
    """

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand: ...


def instance_limit_pct(now: Snapshot) -> float:
    """The most one instance can use: one core, or what the largest node gives if that is less."""
    return min(100.0, now.largest_node_pct)


def total_seats(now: Snapshot) -> int | None:
    """Seats of the live workers; of all slots if workers are started on demand; None: without limit."""
    by_node = _seats_by_node(now)
    return None if by_node is None else sum(by_node.values())


def spare_seats(now: Snapshot) -> int:
    """Seats to keep free for the loss of the node with most seats, minus the seats of sleeping nodes."""
    by_node = _seats_by_node(now)
    if by_node is None or len(by_node) < 2:
        return 0
    return max(0, max(by_node.values()) - sum((n.seats or 0) * n.slots for n in now.asleep))


def _seats_by_node(now: Snapshot) -> Counter[str] | None:
    if now.workers and now.shared_workers:
        found: Counter[str] = Counter()
        for w in now.workers:
            found[w.slot.node] += w.seats
        return found
    if any(n.seats is None for n in now.nodes):
        return None
    return Counter({n.name: (n.seats or 0) * n.slots for n in now.nodes})


def most_instances(now: Snapshot) -> int:
    """Most instances of an operator that declares no maximum: not more than there are seats, nor than the cluster has
    use for, even if each instance waits most of its time."""
    cores = ceil(now.cluster_cpu_pct / 100.0)
    seats = total_seats(now)
    useful = max(1, cores) * INSTANCES_PER_CORE
    return useful if seats is None else min(useful, max(1, seats))


def bounded(now: Snapshot, operator: Operator, wanted: int) -> int:
    """As many as wanted, within the bounds of the operator."""
    if operator.fixed_because:
        return operator.parallelism
    most = operator.max_parallelism
    if most is None:
        most = max(most_instances(now), operator.parallelism)
    return max(operator.min_parallelism, min(most, wanted))


def demanded_before(history: Sequence[Cycle], topology: str, operator: str) -> OperatorDemand | None:
    """The demand of the previous cycle."""
    return history[-1].demand.of(topology, operator) if history else None


def ceil(value: float) -> int:
    """Rounded up, but 3.0000000000000004 is 3."""
    return math.ceil(value - 1e-9)
