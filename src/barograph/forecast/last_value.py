"""The arrivals of the present cycle, unchanged. The baseline that every other forecaster is compared with."""

from dataclasses import dataclass
from typing import ClassVar

from barograph.forecast.protocol import ByFrame, Estimate
from barograph.model import Frame, rises


@dataclass(frozen=True)
class LastValue(ByFrame):
    name: ClassVar[str] = "last-value"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:  # noqa: ARG002  # the same for every horizon
        arrived = frame.paced("arrived")
        before = arrived[-2] if len(frame) > 1 else arrived[-1]
        rising = rises(arrived[-1] - before, before)
        return Estimate.of_arrivals(arrived[-1], rising, "as many arrivals as in the last cycle", {})
