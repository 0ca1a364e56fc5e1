"""AUTOSCALE's estimate (Kombi et al.): the line through this window's samples, summed over the next window's.

Given per cycle, so that it compares with the others: arrived = the sum over the next window's sample times (each term
not below 0) / samples; executed = (that sum + pending) / samples. A sample is a cycle.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from barograph.forecast.protocol import ByFrame, Estimate
from barograph.model import Frame, Lines


@dataclass(frozen=True)
class NextWindow(ByFrame):
    """window_s: longer than the largest stateful window of the topology."""

    window_s: float = 60.0
    name: ClassVar[str] = "autoscale"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        samples = max(1, round(self.window_s / float(frame.cycle_s[-1])))
        line = Lines.through(frame.paced("arrived")[-samples:], frame.seen[-samples:])
        received = sum(
            (np.maximum(line.at(horizon_cycles + k), 0.0) for k in range(samples)), np.zeros(len(frame.keys))
        )
        pending = np.maximum(frame.column("pending")[-1], 0.0)
        return Estimate(
            received / samples,
            (received + pending) / samples,
            line.rising,
            f"the line through its last {samples} cycles, over the next {samples}",
            {"received_in_window": received, "pending_rows": pending, "slope_rows_per_cycle": line.slope},
        )
