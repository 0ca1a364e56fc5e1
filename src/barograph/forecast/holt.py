"""Holt's linear method: a level and a trend, each smoothed, so that the weight of old cycles decreases gradually.

level_t = alpha * arrived_t + (1 - alpha) * (level + trend); trend_t = beta * (level_t - level) + (1 - beta) * trend;
the forecast h cycles ahead is level + h * trend, never below 0.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from barograph.forecast.protocol import ByFrame, Estimate
from barograph.model import Frame, Lines


@dataclass(frozen=True)
class Holt(ByFrame):
    """level_gain, trend_gain: alpha and beta, how fast level and trend follow, in (0, 1]. holt_cycles: how many of
    the last cycles are used; older ones would have almost no weight."""

    level_gain: float = 0.6
    trend_gain: float = 0.3
    holt_cycles: int = 24
    name: ClassVar[str] = "holt"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        arrived, seen = frame.paced("arrived")[-self.holt_cycles :], frame.seen[-self.holt_cycles :]
        alpha, beta = self.level_gain, self.trend_gain
        level, trend = np.zeros(arrived.shape[1]), np.zeros(arrived.shape[1])
        count = np.zeros(arrived.shape[1])
        for value, here in zip(arrived, seen, strict=True):
            count = np.where(here, count + 1, count)
            # The first cycle gives the level, the second the trend; smoothing begins with the third.
            new_level = np.where(count > 2, alpha * value + (1 - alpha) * (level + trend), value)
            step = new_level - level
            new_trend = np.where(count > 2, beta * step + (1 - beta) * trend, np.where(count == 2, step, 0.0))
            level, trend = np.where(here, new_level, level), np.where(here, new_trend, trend)
        rising = Lines(level, trend, np.zeros_like(level)).rising
        numbers = {"level_rows": level, "trend_rows_per_cycle": trend}
        return Estimate.of_arrivals(
            level + horizon_cycles * trend, rising, "its smoothed level and trend, extrapolated", numbers
        )
