"""Shares fixed for the whole run: given, or taken from another run (its mean, its peak, or its total allotment).

Liu et al. compare with such declarations: a given per cent of a core for every instance; *avg* and *max*, the mean and
maximum demand per operator of an unconstrained run; and *equal*, each operator's share so that its total over the run
equals what the other run was allotted.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from barograph.model import Cycle, Demand, Forecast, OperatorDemand, Reason, ReasonCode, Snapshot
from barograph.model.checks import require_number
from barograph.scale.protocol import instance_limit_pct

Key = tuple[str, str]


@dataclass(frozen=True)
class Fixed:
    """shares_pct: of one instance, by (topology, operator). every_pct: of all operators not in it.

    Where neither is given the user's declaration counts (``Operator.cpu_pct``), and where there is none,
    undeclared_pct, or if that is None all that one instance can use. least_pct: the minimum for every instance.
    enforced: whether the shares are limits, or only used by placers, as in R-Storm.
    """

    shares_pct: Mapping[Key, float] = field(default_factory=dict)
    every_pct: float | None = None
    undeclared_pct: float | None = None
    least_pct: float = 0.0
    enforced: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares_pct", MappingProxyType(dict(self.shares_pct)))
        for (topology, operator), share in self.shares_pct.items():
            require_number(f"fixed share of {topology}/{operator}", share)
        if self.every_pct is not None:
            require_number("every_pct", self.every_pct)

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:  # noqa: ARG002
        limit, found = instance_limit_pct(now), []
        for topology in now.topologies:
            for operator in topology.operators:
                given = self.shares_pct.get((topology.name, operator.name), self.every_pct)
                declared = operator.cpu_pct if given is None else given
                undeclared = limit if self.undeclared_pct is None else self.undeclared_pct
                share = min(max(undeclared if declared is None else declared, self.least_pct), limit)
                why = "fixed for the run" if declared is not None else "nothing was given or declared"
                count = operator.parallelism
                code = ReasonCode.SHARE_FIXED if declared is not None else ReasonCode.SHARE_UNDECLARED
                reason = Reason(f"{topology.name}/{operator.name}", code, why, {"share_pct": share})
                held = (share,) * count
                found.append(OperatorDemand(topology.name, operator.name, count, held, held, count, reason))
        return Demand(tuple(found), self.enforced)


def mean_used(run: Sequence[Cycle]) -> dict[Key, float]:
    """Mean CPU of one instance of each operator over a run, per cent of a core."""
    return {key: sum(series) / len(series) for key, series in _used(run).items()}


def peak_used(run: Sequence[Cycle]) -> dict[Key, float]:
    """The largest cycle's CPU of one instance of each operator in a run, per cent of a core."""
    return {key: max(series) for key, series in _used(run).items()}


def equal_in_total(run: Sequence[Cycle]) -> dict[Key, float]:
    """Of each operator, the share of one instance that over the run adds up to what the run allotted to it."""
    allotted_s: dict[Key, float] = defaultdict(float)
    instance_s: dict[Key, float] = defaultdict(float)
    for cycle, seconds in zip(run, _held_s(run), strict=True):
        for o in cycle.demand.operators:
            allotted_s[o.topology, o.operator] += sum(o.shares_pct) * seconds
            instance_s[o.topology, o.operator] += o.parallelism * seconds
    return {key: allotted_s[key] / instance_s[key] for key in allotted_s}


def _held_s(run: Sequence[Cycle]) -> list[float]:
    """How long each cycle's decision was in force: until the next one. The last is made when the run ends, so it counts
    for 0 s, unless it is the only one."""
    decided_s = [cycle.snapshot.at_s for cycle in run]
    return [b - a for a, b in pairwise(decided_s)] + [run[-1].snapshot.cycle_s if len(run) == 1 else 0.0]


def _used(run: Sequence[Cycle]) -> dict[Key, list[float]]:
    found: dict[Key, list[float]] = defaultdict(list)
    for cycle in run:
        metrics = cycle.snapshot.metrics
        for key, rows in metrics.rows_of_operator.items():
            cpu_s = float(metrics.columns["cpu_s"][rows].sum())
            found[key].append(100.0 * cpu_s / (len(rows) * cycle.snapshot.cycle_s))
    return found
