"""Complete times, counted in bins of 2 % width: any number of rows in a few kilobytes, and sums that can be merged."""

import numpy as np

from barograph.engines.sim.layout import Floats
from barograph.model import Latency

_PER_OCTAVE = 35
_LEAST_S = 1e-6
_BINS = 45 * _PER_OCTAVE


class Times:
    """count, sum and maximum are exact; percentiles are those of the bins. late: above the timeout."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.bins = np.zeros(_BINS)
        self.count = 0.0
        self.sum_s = 0.0
        self.max_s = 0.0
        self.late = 0.0

    def add(self, times_s: Floats, weights: Floats | None = None) -> None:
        if times_s.size == 0:
            return
        at = (np.log2(np.maximum(times_s, _LEAST_S) / _LEAST_S) * _PER_OCTAVE).astype(np.intp)
        self.bins += np.bincount(np.minimum(at, _BINS - 1), weights=weights, minlength=_BINS)
        if weights is None:
            self.count += float(times_s.size)
            self.sum_s += float(times_s.sum())
            self.late += float(np.count_nonzero(times_s > self.timeout_s))
        else:
            self.count += float(weights.sum())
            self.sum_s += float((times_s * weights).sum())
            self.late += float(weights[times_s > self.timeout_s].sum())
        self.max_s = max(self.max_s, float(times_s.max()))

    def merge(self, other: "Times") -> None:
        self.bins += other.bins
        self.count += other.count
        self.sum_s += other.sum_s
        self.late += other.late
        self.max_s = max(self.max_s, other.max_s)

    def quantile_s(self, q: float) -> float:
        """The middle of the bin that holds it, never above the maximum."""
        if self.count <= 0:
            return 0.0
        at = int(np.searchsorted(np.cumsum(self.bins), q * self.count))
        return float(min(self.max_s, _LEAST_S * 2.0 ** ((min(at, _BINS - 1) + 0.5) / _PER_OCTAVE)))

    @property
    def mean_s(self) -> float:
        return self.sum_s / self.count if self.count > 0 else 0.0

    def latency(self) -> Latency | None:
        """In milliseconds; None where no row ended."""
        if self.count <= 0:
            return None
        p50, p99, p999 = (1000.0 * self.quantile_s(q) for q in (0.5, 0.99, 0.999))
        return Latency(1000.0 * self.mean_s, p50, p99, p999, 1000.0 * self.max_s)
