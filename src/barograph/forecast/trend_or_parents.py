"""Liu et al.'s prediction: the larger of an operator's own trend and what its parents will send it.

L_j = max(own trend, sum over parents of psi_p * rho_p); psi_j = max(0, L_j + mean over phi cycles of delta_j), where
delta = executed - arrived. Kept as published: delta is negative while a backlog builds, so psi is too low during that
time.
"""

from dataclasses import dataclass
from typing import ClassVar

from barograph.forecast.parents import down_the_graph, mean_delta
from barograph.forecast.protocol import ByFrame, Estimate
from barograph.forecast.trend import own_trend
from barograph.model import Frame


@dataclass(frozen=True)
class TrendOrParents(ByFrame):
    """phi: cycles of history behind trend, ratios and delta."""

    phi: int = 5
    name: ClassVar[str] = "trend-or-parents"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        line = own_trend(frame, self.phi)
        own = line.at(horizon_cycles).clip(min=0.0)
        trend = own.tolist()
        arrived, psi, sent = down_the_graph(frame, self.phi, lambda i, s: trend[i] if s is None else max(trend[i], s))
        why = "the larger of its own trend and what its parents will send it; psi adds delta"
        numbers = {"own": own, "parents": sent, "delta_rows": mean_delta(frame, self.phi)}
        return Estimate(arrived, psi, line.rising, why, numbers)
