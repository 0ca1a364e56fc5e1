"""When each row of a load falls due: (time, rate) segments, and the arithmetic on them.

Segments are the one form of a load that the JVM and the simulator take. The due times here and those of
``jvm/source/Load.scala`` are the same IEEE operations in the same order, so both agree to the millisecond; a change of
one fails on ``tests/vectors/replay.json``. Nothing here knows a clock: all times are since the load's start.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from barograph.model.checks import BadInput, require, require_number, require_whole

NEVER_MS = 2**63 - 1
"""The due time of a row that never falls due, because the load has ended at rate 0."""


@dataclass(frozen=True, slots=True)
class Segment:
    """From start_s until end_s the rate, in rows a second, goes in a straight line from rate_start to rate_end."""

    start_s: float
    end_s: float
    rate_start: float
    rate_end: float

    def __post_init__(self) -> None:
        for name in ("start_s", "end_s", "rate_start", "rate_end"):
            require_number(f"segment.{name}", getattr(self, name))
        require(self.end_s > self.start_s, f"a segment from {self.start_s:g}s must end later, not at {self.end_s:g}s")

    @property
    def slope(self) -> float:
        return (self.rate_end - self.rate_start) / (self.end_s - self.start_s)

    @property
    def rows(self) -> float:
        return (self.rate_start + self.rate_end) * 0.5 * (self.end_s - self.start_s)


@dataclass(frozen=True)
class Schedule:
    """Segments without gaps from 0 on. After the last one its final rate holds for ever.

    Rows are numbered g = 0, 1, 2, ... over all partitions; row g falls due when the count of rows that the rates add
    up to passes g, so row 0 is due at the first moment of positive rate. Row k of partition p of n is row k * n + p,
    so partitions interleave evenly. A load of rate r that is closed after s seconds has r * s rows.
    """

    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        require(len(self.segments) > 0, "a schedule needs at least one segment")
        expected = 0.0
        for segment in self.segments:
            require(
                segment.start_s == expected,
                f"a segment starts at {segment.start_s:g}s where the one before ends at {expected:g}s",
            )
            expected = segment.end_s

    @cached_property
    def _starts_s(self) -> list[float]:
        return [s.start_s for s in self.segments]

    @cached_property
    def _rows_before(self) -> list[float]:
        """Rows due before each segment, and before the rate that holds after the last."""
        counts = [0.0]
        for segment in self.segments:
            counts.append(counts[-1] + segment.rows)
        return counts

    @property
    def end_s(self) -> float:
        return self.segments[-1].end_s

    def rate_at(self, t_s: float) -> float:
        """Rows a second at that moment; where one segment ends and another starts, the latter's."""
        if t_s < 0:
            return 0.0
        if t_s >= self.end_s:
            return self.segments[-1].rate_end
        segment = self.segments[bisect_right(self._starts_s, t_s) - 1]
        return segment.rate_start + segment.slope * (t_s - segment.start_s)

    def rows_by(self, t_s: float) -> float:
        """What the rates add up to until then, as a real number."""
        if t_s <= 0:
            return 0.0
        if t_s >= self.end_s:
            return self._rows_before[-1] + self.segments[-1].rate_end * (t_s - self.end_s)
        i = bisect_right(self._starts_s, t_s) - 1
        segment = self.segments[i]
        dt = t_s - segment.start_s
        return self._rows_before[i] + (segment.rate_start + (segment.rate_start + segment.slope * dt)) * 0.5 * dt

    def due_s(self, row: int) -> float:
        """When row g falls due; infinite where it never does.

        Within a segment with c rows to go: dt = 2c / (r0 + sqrt(r0^2 + 2 slope c)), the root of
        r0 dt + slope dt^2 / 2 = c in the form that loses no digits when the slope is small.
        """
        g = float(row)
        i = bisect_right(self._rows_before, g) - 1
        c = g - self._rows_before[i]
        if i == len(self.segments):
            rate = self.segments[-1].rate_end
            return self.end_s + c / rate if rate > 0.0 else math.inf
        segment = self.segments[i]
        if c <= 0.0:
            return segment.start_s
        r0 = segment.rate_start
        root = math.sqrt(max(0.0, r0 * r0 + 2.0 * segment.slope * c))
        return min(segment.end_s, segment.start_s + 2.0 * c / (r0 + root))

    def due_ms(self, partition: int, k: int, partitions: int) -> int:
        """When row k of a partition falls due, in whole milliseconds since the load's start; NEVER_MS for never."""
        due_s = self.due_s(k * partitions + partition)
        return NEVER_MS if math.isinf(due_s) else min(NEVER_MS, math.floor(due_s * 1000.0))

    def rows_due(self, partition: int, partitions: int, t_ms: int) -> int:
        """How many rows of the partition are due by then: exactly the number of k with due_ms(k) <= t_ms."""
        require_whole("partitions", partitions, 1)
        require(0 <= partition < partitions, f"there is no partition {partition} of {partitions}")
        if t_ms < 0:
            return 0
        guess = max(0, int((self.rows_by((t_ms + 1) / 1000.0) - partition) / partitions))
        low, high = max(0, guess - 2), guess + 2  # the guess is right but for rounding: widen until it is bracketed
        while low > 0 and self.due_ms(partition, low - 1, partitions) > t_ms:
            low = max(0, low - (high - low))
        while self.due_ms(partition, high, partitions) <= t_ms:
            high += high - low
        while low < high:
            middle = (low + high) // 2
            if self.due_ms(partition, middle, partitions) <= t_ms:
                low = middle + 1
            else:
                high = middle
        return low

    def rows_until(self, partition: int, partitions: int, close_s: float) -> int:
        """How many rows of the partition a source has if it is closed then: those due before, not at, that moment."""
        return self.rows_due(partition, partitions, math.floor(close_s * 1000.0) - 1)


def encode(segments: Sequence[Segment]) -> str:
    """Segments as text: ``start:end:rate:rate`` joined by ``;``, every digit kept."""
    return ";".join(":".join(repr(float(v)) for v in (s.start_s, s.end_s, s.rate_start, s.rate_end)) for s in segments)


def decode(text: str) -> tuple[Segment, ...]:
    found = []
    for piece in text.split(";"):
        try:
            start_s, end_s, rate_start, rate_end = (float(v) for v in piece.split(":"))
        except ValueError:
            raise BadInput(f"{piece!r} is not a segment start:end:rate:rate") from None
        found.append(Segment(start_s, end_s, rate_start, rate_end))
    return Schedule(tuple(found)).segments
