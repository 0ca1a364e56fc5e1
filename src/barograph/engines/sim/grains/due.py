"""When the rows of a source fall due, many rows at a time. The arithmetic is ``model/loads/schedule.py``'s, on arrays.

Instance i of n takes the fraction f_i of the load. Its row k is due when the load's count of rows passes
(k + i/n) / f_i; with equal fractions that is row k * n + i of the load, as in the replay source.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from barograph.model.loads.load import Load

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class DueTimes:
    def __init__(self, load: Load, fractions: Sequence[float], until_s: float) -> None:
        segments = load.segments(until_s)
        self._start = np.array([s.start_s for s in segments] + [segments[-1].end_s])
        rates = [s.rate_start for s in segments] + [segments[-1].rate_end]
        self._rate = np.array(rates)
        self._slope = np.array([s.slope for s in segments] + [0.0])
        self._before = np.concatenate([[0.0], np.cumsum([s.rows for s in segments])])
        self.fractions: Floats = np.array(fractions, dtype=np.float64)
        n = len(self.fractions)
        self._phase = np.arange(n) / n

    def count(self, t_s: float) -> float:
        """Rows of the whole load due by then, as a real number."""
        i = max(0, int(np.searchsorted(self._start, t_s, side="right")) - 1)
        dt = t_s - self._start[i]
        return float(self._before[i] + (self._rate[i] + 0.5 * self._slope[i] * dt) * dt)

    def amounts(self, t_s: float) -> Floats:
        """Rows of each instance due by then, as real numbers."""
        return self.count(t_s) * self.fractions

    def rows_due(self, t_s: float) -> Ints:
        """Whole rows of each instance due before then."""
        whole: Ints = np.maximum(0, np.ceil(self.amounts(t_s) - self._phase)).astype(np.int64)
        return whole

    def due_s(self, instance: NDArray[np.intp], k: Floats) -> Floats:
        """When row k of each instance falls due; infinite where it never does."""
        return self.moment((k + self._phase[instance]) / self.fractions[instance])

    def next_s(self, seen: Ints) -> float:
        """When the next row falls due, where each instance has had ``seen`` rows; infinite where none does."""
        return float(self.due_s(np.arange(seen.size), seen.astype(np.float64)).min())

    def moment(self, g: Floats) -> Floats:
        """When the whole load's count of due rows passed g."""
        i = np.searchsorted(self._before, g, side="right") - 1
        c = g - self._before[i]
        rate = self._rate[i]
        root = np.sqrt(np.maximum(0.0, rate * rate + 2.0 * self._slope[i] * c))
        with np.errstate(divide="ignore", invalid="ignore"):
            dt = np.where(c > 0, 2.0 * c / (rate + root), 0.0)
        found: Floats = self._start[i] + dt
        return found
