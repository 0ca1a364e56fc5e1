"""Complete times of many rows, counted in the buckets of ``engines/latency.py``, here in whole microseconds.

Amounts of rows are real numbers in grain flows, and times may be below a millisecond; so this has arrays of its own,
and shares the buckets and their error of less than 1 %.
"""

import numpy as np

from barograph.engines.latency import BUCKETS, bounds, buckets_of, middle_ms
from barograph.engines.sim.world.layout import Floats
from barograph.model import Latency

_PER_S = 1e6


class CompleteTimes:
    """count, sum, maximum and late (rows above the timeout) are exact; percentiles are the middles of buckets."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._rows = np.zeros(BUCKETS)
        self.count = 0.0
        self.sum_s = 0.0
        self.max_s = 0.0
        self.late = 0.0

    def add(self, times_s: Floats, weights: Floats | None = None) -> None:
        if times_s.size == 0:
            return
        self._rows += np.bincount(buckets_of(times_s * _PER_S), weights=weights, minlength=BUCKETS)
        if weights is None:
            self.count += float(times_s.size)
            self.sum_s += float(times_s.sum())
            self.late += float(np.count_nonzero(times_s > self.timeout_s))
        else:
            self.count += float(weights.sum())
            self.sum_s += float((times_s * weights).sum())
            self.late += float(weights[times_s > self.timeout_s].sum())
        self.max_s = max(self.max_s, float(times_s.max()))

    def merge(self, other: "CompleteTimes") -> None:
        self._rows += other._rows
        self.count += other.count
        self.sum_s += other.sum_s
        self.late += other.late
        self.max_s = max(self.max_s, other.max_s)

    def less(self, other: "CompleteTimes") -> "CompleteTimes":
        """Without the rows of an earlier moment. The maximum is that of the last bucket with rows, if it is smaller."""
        found = CompleteTimes(self.timeout_s)
        found._rows = np.maximum(0.0, self._rows - other._rows)
        found.count = float(found._rows.sum())
        if found.count > 0:
            found.sum_s, found.late = max(0.0, self.sum_s - other.sum_s), max(0.0, self.late - other.late)
            found.max_s = min(self.max_s, (bounds(int(np.flatnonzero(found._rows)[-1]))[1] + 1) / _PER_S)
        return found

    def quantile_s(self, q: float) -> float:
        """The middle of the bucket that holds it, never above the maximum."""
        if self.count <= 0:
            return 0.0
        at = int(np.searchsorted(np.cumsum(self._rows), q * self.count))
        return float(min(self.max_s, (middle_ms(min(at, BUCKETS - 1)) + 0.5) / _PER_S))

    @property
    def mean_s(self) -> float:
        return self.sum_s / self.count if self.count > 0 else 0.0

    def latency(self) -> Latency | None:
        """In milliseconds; None where no row ended."""
        if self.count <= 0:
            return None
        p50, p99, p999 = (1000.0 * self.quantile_s(q) for q in (0.5, 0.99, 0.999))
        return Latency(1000.0 * self.mean_s, p50, p99, p999, 1000.0 * self.max_s)
