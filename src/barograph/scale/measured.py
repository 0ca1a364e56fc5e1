"""For schedulers that do not control CPU: the present number of instances, each with its measured CPU use.

Nothing is enforced. For schedulers that work with declarations, a declared share takes precedence over the measured
use.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Demand, Forecast, Operator, OperatorDemand, Reason, ReasonCode, Snapshot
from barograph.scale.protocol import instance_limit_pct


def used_pct(
    history: Sequence[Cycle], now: Snapshot, topology: str, operator: Operator, cycles: int
) -> NDArray[np.float64]:
    """CPU each present instance used, mean over the last cycles with the present number of instances."""
    total, seconds = np.zeros(operator.parallelism), 0.0
    for snapshot in (*(c.snapshot for c in history[-(cycles - 1) :] if cycles > 1), now):
        rows = snapshot.metrics.rows_of_operator.get((topology, operator.name))
        if rows is not None and len(rows) == operator.parallelism:
            total = total + snapshot.metrics.columns["cpu_s"][rows]
            seconds += snapshot.cycle_s
    return 100.0 * total / seconds if seconds > 0 else total


def assumed_pct(
    history: Sequence[Cycle], now: Snapshot, topology: str, operator: Operator, instances: int, cycles: int
) -> tuple[float, ...]:
    """The CPU that a placer assumes for each instance: the declared share, else the measured use."""
    limit = instance_limit_pct(now)
    if operator.cpu_pct is not None:
        return (min(operator.cpu_pct, limit),) * instances
    seen = np.minimum(used_pct(history, now, topology, operator, cycles), limit)
    if instances != operator.parallelism:
        return (min(float(seen.sum()) / instances, limit),) * instances
    return tuple(seen.tolist())


def all_declared(now: Snapshot) -> bool:
    """Whether every operator's CPU is declared, so that these shares are reserved and not just estimated."""
    return all(o.cpu_pct is not None for t in now.topologies for o in t.operators)


@dataclass(frozen=True)
class Measured:
    """averaged_cycles: cycles over which use is averaged. declared_first: whether a declared share takes precedence."""

    averaged_cycles: int = 5
    declared_first: bool = False

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:  # noqa: ARG002
        found = []
        for topology in now.topologies:
            for operator in topology.operators:
                here = f"{topology.name}/{operator.name}"
                if self.declared_first:
                    shares = assumed_pct(
                        history, now, topology.name, operator, operator.parallelism, self.averaged_cycles
                    )
                    code, why = ReasonCode.SHARE_DECLARED, "as declared"
                    if operator.cpu_pct is None:
                        code, why = ReasonCode.SHARE_MEASURED, "nothing declared: as measured"
                else:
                    seen = used_pct(history, now, topology.name, operator, self.averaged_cycles)
                    shares = tuple(np.minimum(seen, instance_limit_pct(now)).tolist())
                    code, why = ReasonCode.SHARE_MEASURED, f"as measured over {self.averaged_cycles} cycles"
                found.append(
                    OperatorDemand(
                        topology.name,
                        operator.name,
                        operator.parallelism,
                        shares,
                        shares,
                        operator.parallelism,
                        Reason(here, code, why, {"total_pct": float(sum(shares))}),
                    )
                )
        return Demand(tuple(found), enforced=False, reserved=self.declared_first)
