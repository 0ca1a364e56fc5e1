"""Least-squares lines through the last cycles of many series at once. Arithmetic only.

A series is a column; its rows are cycles, the newest last. Cycles in which a series was not seen do not count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A change below this part of the series' level is none: rounding must not make a constant load rise.
FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class Lines:
    """One line per series: its mean, its slope per unit of the axis, and where on the axis the mean lies.

    With one cycle the line repeats it, with none it is 0.
    """

    mean: NDArray[np.float64]
    slope: NDArray[np.float64]
    centre: NDArray[np.float64]

    @staticmethod
    def through(
        values: NDArray[np.float64],
        seen: NDArray[np.bool_],
        where: NDArray[np.float64] | None = None,
        weight: NDArray[np.float64] | None = None,
    ) -> "Lines":
        """where: the place of each cycle on the axis; without it the newest is at 0 and the coming one at 1.

        weight: how much each cycle counts; without it all count the same.
        """
        places = (np.arange(1 - len(values), 1, dtype=np.float64) if where is None else where)[:, None]
        counts = np.where(seen, 1.0 if weight is None else weight[:, None], 0.0)
        total = counts.sum(axis=0)
        total = np.where(total > 0, total, 1.0)
        centre = (counts * places).sum(axis=0) / total
        mean = (counts * values).sum(axis=0) / total
        off = np.where(seen, places - centre, 0.0)
        spread = (counts * off * off).sum(axis=0)
        slope = (counts * off * (values - mean)).sum(axis=0) / np.where(spread > 0, spread, 1.0)
        return Lines(mean, slope, centre)

    def at(self, place: float) -> NDArray[np.float64]:
        return self.mean + self.slope * (place - self.centre)

    @property
    def rising(self) -> NDArray[np.bool_]:
        return rises(self.slope, self.mean)


def rises(by: NDArray[np.float64], level: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each series rises that changes by so much, from or around so high a level."""
    found: NDArray[np.bool_] = by > FLAT * np.maximum(np.abs(level), 1.0)
    return found


def slope_of(values: list[float]) -> float:
    """The slope per step of the line through a short list, oldest first."""
    column = np.array(values, dtype=np.float64)[:, None]
    return float(Lines.through(column, np.ones(column.shape, dtype=np.bool_)).slope[0]) if values else 0.0
