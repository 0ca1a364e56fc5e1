"""An operator's own trend: the least-squares line over its last phi arrival counts (Liu et al.), never below 0."""

from dataclasses import dataclass
from typing import ClassVar

from barograph.forecast.protocol import ByFrame, Estimate
from barograph.model import Frame, Lines


def own_trend(frame: Frame, phi: int) -> Lines:
    return Lines.through(frame.paced("arrived")[-phi:], frame.seen[-phi:])


@dataclass(frozen=True)
class Trend(ByFrame):
    """phi: how many cycles the line goes through. With fewer it uses all there are; one is repeated."""

    phi: int = 5
    name: ClassVar[str] = "trend"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        line = own_trend(frame, self.phi)
        why = f"the line through its last {self.phi} cycles, extrapolated"
        return Estimate.of_arrivals(line.at(horizon_cycles), line.rising, why, {"slope_rows_per_cycle": line.slope})
