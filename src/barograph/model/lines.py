"""Least-squares lines through the last cycles of many series at once. Arithmetic only.

A series is a column; its rows are cycles, the newest last. Cycles in which a series was not seen do not count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A slope below this part of the series' mean in each cycle is flat: rounding must not make a constant load rise.
FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class Lines:
    """One line per series: its mean, its slope per cycle, and where on the axis of cycles the mean lies.

    The newest cycle is at 0, the coming one at 1. With one cycle the line repeats it, with none it is 0.
    """

    mean: NDArray[np.float64]
    slope: NDArray[np.float64]
    centre: NDArray[np.float64]

    @staticmethod
    def through(values: NDArray[np.float64], seen: NDArray[np.bool_]) -> "Lines":
        count = np.maximum(seen.sum(axis=0), 1)
        when = np.arange(1 - len(values), 1, dtype=np.float64)[:, None]
        centre = np.where(seen, when, 0.0).sum(axis=0) / count
        mean = np.where(seen, values, 0.0).sum(axis=0) / count
        off = np.where(seen, when - centre, 0.0)
        spread = (off * off).sum(axis=0)
        slope = (off * (values - mean)).sum(axis=0) / np.where(spread > 0, spread, 1.0)
        return Lines(mean, slope, centre)

    def at(self, cycles_ahead: float) -> NDArray[np.float64]:
        return self.mean + self.slope * (cycles_ahead - self.centre)

    @property
    def rising(self) -> NDArray[np.bool_]:
        return self.slope > FLAT * np.maximum(np.abs(self.mean), 1.0)


def slope_of(values: list[float]) -> float:
    """The slope per step of the line through a short list, oldest first."""
    column = np.array(values, dtype=np.float64)[:, None]
    return float(Lines.through(column, np.ones(column.shape, dtype=np.bool_)).slope[0]) if values else 0.0
