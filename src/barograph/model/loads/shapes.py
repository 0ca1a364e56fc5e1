"""The shapes a load can have, each as a series of segments, endless where the shape is. No text and no horizon here.

highest: a rate that the shape never exceeds. last_rate: what holds for ever after its segments; None where they never
end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise

from barograph.model.loads.schedule import Segment

Point = tuple[float, float]  # (time in s, rows a second)
_FOREVER_S = 1e12


@dataclass(frozen=True, slots=True)
class Steps:
    points: tuple[Point, ...]

    def pieces(self) -> Iterator[Segment]:
        yield from _lead_in(self.points[0])
        for (start_s, rate), (end_s, _) in pairwise(self.points):
            yield Segment(start_s, end_s, rate, rate)

    @property
    def last_rate(self) -> float | None:
        return self.points[-1][1]

    @property
    def highest(self) -> float:
        return max(rate for _, rate in self.points)


@dataclass(frozen=True, slots=True)
class Ramp:
    points: tuple[Point, ...]

    def pieces(self) -> Iterator[Segment]:
        yield from _lead_in(self.points[0])
        for (start_s, rate_start), (end_s, rate_end) in pairwise(self.points):
            yield Segment(start_s, end_s, rate_start, rate_end)

    @property
    def last_rate(self) -> float | None:
        return self.points[-1][1]

    @property
    def highest(self) -> float:
        return max(rate for _, rate in self.points)


@dataclass(frozen=True, slots=True)
class OnOff:
    high: float
    low: float
    share: float
    period_s: float
    last_rate: None = None

    def pieces(self) -> Iterator[Segment]:
        for i in count():
            start_s, end_s = i * self.period_s, (i + 1) * self.period_s
            turn_s = min(end_s, start_s + self.share * self.period_s)
            if turn_s > start_s:
                yield Segment(start_s, turn_s, self.high, self.high)
            if end_s > turn_s:
                yield Segment(turn_s, end_s, self.low, self.low)

    @property
    def highest(self) -> float:
        return max(self.high, self.low)


@dataclass(frozen=True, slots=True)
class Random:
    least: int
    most: int
    times: float
    every_s: float
    seed: int
    last_rate: None = None

    def pieces(self) -> Iterator[Segment]:
        for i, draw in enumerate(_splitmix64(self.seed)):
            rate = (self.least + (draw * (self.most - self.least + 1) >> 64)) * self.times
            yield Segment(i * self.every_s, (i + 1) * self.every_s, rate, rate)

    @property
    def highest(self) -> float:
        return self.most * self.times


@dataclass(frozen=True, slots=True)
class InBatches:
    """A number of equal batches, one each period, each sent within a part of its period; then nothing more."""

    rows: float
    every_s: float
    count: int
    within_s: float
    last_rate: float = 0.0

    def pieces(self) -> Iterator[Segment]:
        for i in range(self.count):
            start_s, end_s = i * self.every_s, (i + 1) * self.every_s
            sent_s = min(end_s, start_s + self.within_s)
            yield Segment(start_s, sent_s, self.highest, self.highest)
            if end_s > sent_s:
                yield Segment(sent_s, end_s, 0.0, 0.0)

    @property
    def highest(self) -> float:
        return self.rows / self.within_s


@dataclass(frozen=True, slots=True)
class Noisy:
    """Another shape whose rate is off by a factor between 1 - part and 1 + part, drawn anew every ``every_s``.

    All factors in that range are equally likely, so the mean stays what it was.
    """

    shape: Steps | Ramp | OnOff | Random | InBatches
    part: float
    every_s: float
    seed: int
    last_rate: None = None

    def pieces(self) -> Iterator[Segment]:
        calm = self._calm()
        piece: Segment | None = next(calm)
        for i, draw in enumerate(_splitmix64(self.seed)):
            factor = 1.0 + self.part * (2.0 * draw / 2**64 - 1.0)
            end_s = (i + 1) * self.every_s
            while piece is not None and piece.end_s <= end_s:
                yield _scaled(piece, factor)
                piece = next(calm, None)
            if piece is None:  # a period longer than any run
                return
            if piece.start_s < end_s:
                middle = max(0.0, piece.rate_start + piece.slope * (end_s - piece.start_s))
                yield _scaled(Segment(piece.start_s, end_s, piece.rate_start, middle), factor)
                piece = Segment(end_s, piece.end_s, middle, piece.rate_end)

    def _calm(self) -> Iterator[Segment]:
        """The shape's segments, and then its last rate."""
        end_s = 0.0
        for piece in self.shape.pieces():
            yield piece
            end_s = piece.end_s
        rate = self.shape.last_rate or 0.0
        yield Segment(end_s, end_s + _FOREVER_S, rate, rate)

    @property
    def highest(self) -> float:
        return self.shape.highest * (1.0 + self.part)


Shape = Steps | Ramp | OnOff | Random | InBatches | Noisy


def _scaled(piece: Segment, factor: float) -> Segment:
    return Segment(piece.start_s, piece.end_s, piece.rate_start * factor, piece.rate_end * factor)


def _lead_in(first: Point) -> Iterator[Segment]:
    if first[0] > 0:
        yield Segment(0.0, first[0], 0.0, 0.0)


def _splitmix64(seed: int) -> Iterator[int]:
    """Steele, Lea and Flood's generator: the same 64-bit numbers in every language and version."""
    mask = 2**64 - 1
    state = seed & mask
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)
