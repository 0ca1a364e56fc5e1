"""The CPU shares that a policy requested for the instances over a run, from the recorded cycles. Pure.

Limits may be higher where a policy lends idle CPU; ``run_meter`` sums up both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.model import Cycle


@dataclass(frozen=True, slots=True)
class OperatorShare:
    """Per cent of a core of one instance: the mean over instances and time, and the largest of any instance."""

    instances: int
    mean_pct: float
    max_pct: float

    def to_json(self) -> dict[str, object]:
        return {"instances": self.instances, "mean": round(self.mean_pct, 2), "max": round(self.max_pct, 2)}


def asked(cycles: Sequence[tuple[float, Cycle]], seconds: float) -> dict[str, OperatorShare]:
    """By operator, of a run whose load lasts from 0 to ``seconds``; empty where the policy asked for none.

    cycles: each with the second at which it had been decided.
    """
    found: dict[str, list[tuple[float, tuple[float, ...]]]] = {}
    for k, (at_s, cycle) in enumerate(cycles):
        since_s = 0.0 if k == 0 else at_s  # the first cycle stands for the time before it
        until_s = cycles[k + 1][0] if k + 1 < len(cycles) else seconds
        held_s = min(until_s, seconds) - max(since_s, 0.0)
        if held_s <= 0 or not cycle.demand.reserved:
            continue
        for o in cycle.demand.operators:
            if o.held_pct:  # otherwise it is a guess about an operator that was never observed
                found.setdefault(o.operator, []).append((held_s, o.shares_pct))
    return {operator: _share(series) for operator, series in found.items()}


def _share(series: list[tuple[float, tuple[float, ...]]]) -> OperatorShare:
    instance_s = sum(held_s * len(shares) for held_s, shares in series)
    mean = sum(held_s * sum(shares) for held_s, shares in series) / instance_s
    return OperatorShare(len(series[-1][1]), mean, max(max(shares) for _, shares in series))
