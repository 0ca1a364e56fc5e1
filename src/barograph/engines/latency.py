"""Latencies of many rows as one mergeable histogram: log-linear buckets, relative error below 1 %.

Whole milliseconds below 128 have a bucket each. Above, every power of two is cut into 64 buckets; a bucket stands for
its middle, which is at most 1/128 of the value away from whatever fell into it. Histograms of several instances and
seconds are added bucket by bucket, so a percentile of the whole is as exact as one of a part. The plug-in counts in the
same buckets.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from barograph.model import Latency

_EXACT_MS = 128
_PER_OCTAVE = 64
_LARGEST_MS = (1 << 40) - 1
BUCKETS = _PER_OCTAVE * (40 - 7) + _EXACT_MS  # how many there are


def bucket_of(ms: int) -> int:
    """The bucket of a latency. Negative latencies, which two clocks can produce, count as 0."""
    value = min(max(ms, 0), _LARGEST_MS)
    if value < _EXACT_MS:
        return value
    shift = value.bit_length() - 7
    return _PER_OCTAVE * shift + (value >> shift)


def buckets_of(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The bucket of each of many values, of any unit; fractions count as the whole number below them."""
    value = np.clip(values, 0.0, _LARGEST_MS)
    shift = np.maximum(np.frexp(value)[1] - 7, 0)
    found: NDArray[np.intp] = _PER_OCTAVE * shift.astype(np.intp) + np.ldexp(value, -shift).astype(np.intp)
    return found


def bounds(bucket: int) -> tuple[int, int]:
    """The least and the largest whole millisecond of a bucket."""
    if bucket < _EXACT_MS:
        return bucket, bucket
    shift = bucket // _PER_OCTAVE - 1
    low = (bucket - _PER_OCTAVE * shift) << shift
    return low, low + (1 << shift) - 1


def middle_ms(bucket: int) -> float:
    low, high = bounds(bucket)
    return (low + high) / 2


@dataclass(frozen=True)
class Histogram:
    """rows: bucket -> rows. max_ms: the maximum of these rows, or of these and earlier ones: see ``largest_ms``."""

    rows: Mapping[int, int] = field(default_factory=dict)
    sum_ms: float = 0.0
    max_ms: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", MappingProxyType(dict(sorted(self.rows.items()))))

    def __reduce__(self) -> tuple[object, ...]:
        """Reports are pickled between processes, and a read-only view of a dict cannot be."""
        return Histogram, (dict(self.rows), self.sum_ms, self.max_ms)

    @staticmethod
    def of(latencies_ms: Iterable[int]) -> "Histogram":
        rows: dict[int, int] = {}
        total, largest = 0, 0
        for ms in latencies_ms:
            rows[bucket_of(ms)] = rows.get(bucket_of(ms), 0) + 1
            total, largest = total + max(ms, 0), max(largest, ms)
        return Histogram(rows, total, largest)

    @property
    def count(self) -> int:
        return sum(self.rows.values())

    def __add__(self, other: "Histogram") -> "Histogram":
        rows = dict(self.rows)
        for bucket, n in other.rows.items():
            rows[bucket] = rows.get(bucket, 0) + n
        return Histogram(rows, self.sum_ms + other.sum_ms, max(self.max_ms, other.max_ms))

    def percentile_ms(self, part: float) -> float:
        """The least latency that at least this part of the rows does not exceed."""
        rank = max(1, math.ceil(part * self.count))
        seen = 0
        for bucket, n in self.rows.items():
            seen += n
            if seen >= rank:
                return middle_ms(bucket)
        raise ValueError("an empty histogram has no percentile")

    def above(self, ms: float) -> int:
        """Rows above a limit; of those within 1 % of it some may be on the wrong side."""
        return sum(n for bucket, n in self.rows.items() if middle_ms(bucket) > ms)

    def largest_ms(self) -> float:
        """``max_ms`` if it is in the last bucket that has rows; else the middle of that bucket."""
        last = max(self.rows)
        return self.max_ms if bucket_of(int(self.max_ms)) == last else middle_ms(last)

    def latency(self) -> Latency | None:
        """Mean, percentiles and maximum; None if there are no rows."""
        if not self.rows:
            return None
        p50, p99, p999 = (self.percentile_ms(p) for p in (0.5, 0.99, 0.999))
        return Latency(mean=self.sum_ms / self.count, p50=p50, p99=p99, p999=p999, max=self.largest_ms())
