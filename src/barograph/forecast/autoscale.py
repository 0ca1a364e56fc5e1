"""AUTOSCALE's estimate (Kombi et al.): the line through this window's samples, summed over the next iteration's.

Windows slide by one sample, so the next iteration has this window's sample times shifted by one sample: all but one of
them are known already. A sample is a cycle. Cycles differ in length, so the line goes through rates: each sample is its
rows a second at its middle, weighted by its length. With samples of equal length this is the paper's line.

Results are per cycle, as in the other forecasters: arrived = rows in the next iteration (each term not below 0) / its
length * the length of the present cycle; executed = the same with the pending rows added.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from barograph.forecast.protocol import ByFrame, Estimate
from barograph.model import Frame, Lines


@dataclass(frozen=True)
class NextWindow(ByFrame):
    """window_s: longer than the largest stateful window of the topology.

    samples_ahead: by how many samples the window is shifted, 1 in the paper; None: as many as the horizon has cycles.
    """

    window_s: float = 60.0
    samples_ahead: int | None = None
    name: ClassVar[str] = "autoscale"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        samples = frame.window(self.window_s)
        length_s, middle_s = frame.cycle_s[-samples:], frame.middle_s[-samples:]
        rates = frame.column("arrived")[-samples:] / length_s[:, None]
        line = Lines.through(rates, frame.seen[-samples:], middle_s, length_s)
        ahead = horizon_cycles if self.samples_ahead is None else self.samples_ahead
        sample_s = float(np.median(length_s))  # the expected length of the next sample
        received = np.zeros(len(frame.keys))
        for middle, length in zip(middle_s.tolist(), length_s.tolist(), strict=True):
            received += np.maximum(line.at(middle + ahead * sample_s), 0.0) * length
        pending = np.maximum(frame.column("pending")[-1], 0.0)
        of_a_cycle = float(frame.cycle_s[-1] / length_s.sum())
        return Estimate(
            received * of_a_cycle,
            (received + pending) * of_a_cycle,
            line.rising,
            f"the line through its last {samples} cycles, shifted by {ahead}",
            {"received_in_window": received, "pending_rows": pending, "slope_rows_per_cycle": line.slope * sample_s**2},
        )
