"""What a run's CPU came to: allotted over time, and each operator's shares, from the cycles that were recorded. Pure.

Allotted is what was in force, as in the simulator: an instance's limit, or one core where it has none, and a node never
more than it has. Shares are what the policy asked for each instance; limits may be above them where a policy lends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.model import Cycle, Instance

_CORE_PCT = 100.0


@dataclass(frozen=True, slots=True)
class OperatorShare:
    """Per cent of a core of one instance: the mean over instances and time, and the most any instance had."""

    instances: int
    mean_pct: float
    max_pct: float

    def to_json(self) -> dict[str, object]:
        return {"instances": self.instances, "mean": round(self.mean_pct, 2), "max": round(self.max_pct, 2)}


@dataclass(frozen=True, slots=True)
class Spent:
    """shares: by operator; empty where nobody asked for any."""

    allotted_core_s: float
    shares: dict[str, OperatorShare]


def spent(cycles: Sequence[tuple[float, Cycle]], seconds: float) -> Spent:
    """Of a run whose load lasts from 0 to ``seconds``. cycles: each with the second at which it had been decided."""
    allotted_core_s = 0.0
    asked: dict[str, list[tuple[float, tuple[float, ...]]]] = {}
    for k, (at_s, pct) in enumerate(in_force(cycles)):
        since_s = 0.0 if k == 0 else at_s  # before the first cycle nothing else is known
        until_s = cycles[k + 1][0] if k + 1 < len(cycles) else seconds
        held_s = min(until_s, seconds) - max(since_s, 0.0)
        if held_s <= 0:
            continue
        allotted_core_s += held_s * pct / 100.0
        for o in cycles[k][1].demand.operators:
            if o.held_pct:  # else it is a guess of one that was never seen at work
                asked.setdefault(o.operator, []).append((held_s, o.shares_pct))
    return Spent(allotted_core_s, {operator: _share(series) for operator, series in asked.items()})


def in_force(cycles: Sequence[tuple[float, Cycle]]) -> list[tuple[float, float]]:
    """Since when how much CPU was allotted in all, per cent of a core."""
    limits: dict[Instance, float] = {}
    found = []
    for at_s, cycle in cycles:
        if cycle.outcome is not None and cycle.outcome.ok:
            limits.update(cycle.plan.limits_pct)
        found.append((at_s, _allotted_pct(cycle, limits)))
    return found


def _allotted_pct(cycle: Cycle, limits: dict[Instance, float]) -> float:
    now = cycle.snapshot
    given = {n.name: n.cpu_pct for n in now.nodes}
    wanted: dict[str, float] = {}
    for instance, slot in now.placement.slots.items():
        slot = cycle.plan.placement.get(instance) or slot
        wanted[slot.node] = wanted.get(slot.node, 0.0) + limits.get(instance, _CORE_PCT)
    return sum(min(pct, given.get(node, pct)) for node, pct in wanted.items())


def _share(series: list[tuple[float, tuple[float, ...]]]) -> OperatorShare:
    instance_s = sum(held_s * len(shares) for held_s, shares in series)
    mean = sum(held_s * sum(shares) for held_s, shares in series) / instance_s
    return OperatorShare(len(series[-1][1]), mean, max(max(shares) for _, shares in series))
