"""What a scaler is, and what all of them reckon with: bounds of an operator, limits of an instance."""

import math
from collections.abc import Sequence
from typing import Protocol

from barograph.model import Cycle, Demand, Forecast, Operator, OperatorDemand, Snapshot


class Scaler(Protocol):
    """Called once a cycle, after the forecast. Says how many instances each operator needs, and the CPU of each.

    It names every operator of ``now``. It knows nothing of nodes but what the largest of them can give one instance.
    """

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand: ...


def instance_limit_pct(now: Snapshot) -> float:
    """The most one instance can use: one core, or what the largest node gives if that is less."""
    return min(100.0, max((n.cpu_pct for n in now.nodes), default=100.0))


def bounded(operator: Operator, wanted: int) -> int:
    """As many as wanted, within what the operator allows."""
    if operator.fixed_because:
        return operator.parallelism
    most = operator.max_parallelism if operator.max_parallelism is not None else max(wanted, operator.parallelism)
    return max(operator.min_parallelism, min(most, wanted))


def demanded_before(history: Sequence[Cycle], topology: str, operator: str) -> OperatorDemand | None:
    """What the cycle before asked for."""
    return history[-1].demand.of(topology, operator) if history else None


def ceil(value: float) -> int:
    """Rounded up, but 3.0000000000000004 is 3."""
    return math.ceil(value - 1e-9)
