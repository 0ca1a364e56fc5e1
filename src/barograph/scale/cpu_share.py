"""Liu et al.: operators run at their maximum number of instances, and the CPU share of each follows the load.

kappa_j = mean over phi cycles of cpu_s / executed; R_j = psi_j * kappa_j CPU seconds per cycle; per instance
r_j = 100 * R_j / (T_j * cycle_s), per cent of a core, T_j its instances; then smoothed with granularity theta. Every
instance of an operator gets the same. An instance can use one core at most: where r_j > 100 more instances are wanted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import (
    Cycle,
    Demand,
    Forecast,
    Frame,
    Operator,
    OperatorDemand,
    Reason,
    ReasonCode,
    Snapshot,
    mean_of_ratios,
)
from barograph.scale.protocol import bounded, ceil, demanded_before, instance_limit_pct
from barograph.scale.smooth import allotted, hold


@dataclass(frozen=True)
class CpuShare:
    """theta_pct: granularity, in per cent of a core. phi: cycles behind kappa. at_maximum: whether operators run at
    their maximum number of instances (else at the present number)."""

    theta_pct: float = 20.0
    phi: int = 5
    at_maximum: bool = True

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        frame = Frame.of(history, now)
        kappa = mean_of_ratios(frame.column("cpu_s"), frame.column("executed"), self.phi)
        found = []
        for topology in now.topologies:
            for operator in topology.operators:
                cost_s = float(kappa[frame.position[topology.name, operator.name]])
                expected = forecast.of(topology.name, operator.name)
                psi = expected.executed if expected is not None else 0.0
                before = demanded_before(history, topology.name, operator.name)
                found.append(self._demand(now, topology.name, operator, psi, cost_s, before))
        return Demand(tuple(found))

    def _demand(
        self, now: Snapshot, topology: str, operator: Operator, psi: float, cost_s: float, before: OperatorDemand | None
    ) -> OperatorDemand:
        most = operator.max_parallelism or operator.parallelism
        instances = bounded(now, operator, most) if self.at_maximum else operator.parallelism
        held_before = before.held_pct[0] if before is not None and len(before.held_pct) == instances else None
        if np.isfinite(cost_s):
            r_pct = 100.0 * psi * cost_s / (instances * now.cycle_s)
        else:  # it never executed a row: its cost is unknown, so the held value stays
            r_pct, cost_s = held_before or 0.0, 0.0
        held_pct = hold(r_pct, held_before, self.theta_pct)
        share_pct = allotted(held_pct, self.theta_pct, instance_limit_pct(now))
        wanted = max(instances, ceil(instances * r_pct / instance_limit_pct(now)))
        code, why = ReasonCode.SHARE_FORECAST, "psi * kappa per instance, smoothed"
        if wanted > instances:
            code = ReasonCode.INSTANCES_SHORT
            why += f"; an instance would need more than it can use: {wanted} instances are needed"
        numbers = {"psi_rows": psi, "kappa_s": cost_s, "r_pct": r_pct, "held_pct": held_pct, "share_pct": share_pct}
        return OperatorDemand(
            topology,
            operator.name,
            instances,
            (share_pct,) * instances,
            (held_pct,) * instances,
            wanted,
            Reason(f"{topology}/{operator.name}", code, why, numbers),
        )
