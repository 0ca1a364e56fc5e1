"""Load shapes, as people write them, turned into segments: the total of rows a second over all source partitions.

    constant 2000
    steps 0s=500 60s=2500 120s=500              the rate jumps at each time and holds
    ramp 0s=500 60s=2500                        straight lines between the points; the last rate holds
    onoff high=80 low=40 share=0.5 period=60s   each period is high for its share, then low; for ever
    random 1..25 x200 every 10s seed=7          every 10 s a whole number from 1 to 25, times 200; for ever
    batches rows=640 every=60s count=80 within=1s   each 60 s a batch of 640 rows, sent in 1 s; after 80 no more
    trace FILE                                  steps from a file of lines ``seconds,rate``; # comments, one header line
    constant 80 noise 0.05 every 5s seed=7      any of them but a trace, at rates that are off by up to 5 % to either
                                                side; every 5 s by another part, all parts being equally likely

Times are written with ms, s, m or h. Before the first point of steps, ramp and trace the rate is 0. A load decides
nothing about rows: when each falls due is in ``schedule.py``. Only ``trace`` reads, and only while it is parsed.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from barograph.model.checks import BadInput, require, require_positive
from barograph.model.loads.schedule import Schedule, Segment
from barograph.model.loads.shapes import InBatches, Noisy, OnOff, Point, Ramp, Random, Shape, Steps

MAX_SEGMENTS = 100_000
_MAX_RATE = 1e9  # rows a second; beyond it due times would no longer tell rows apart
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_DURATION = re.compile(rf"({_NUMBER})(ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NOISE = "noise"
SHAPES = ("constant", "steps", "ramp", "onoff", "random", "batches", "trace")
_SHAPES = f"{', '.join(SHAPES[:-1])} or {SHAPES[-1]}"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Load:
    """A load shape and the words it was written in."""

    text: str
    shape: Shape

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def parse(text: str, read: Callable[[str], str] = lambda path: Path(path).read_text(encoding="utf-8")) -> "Load":
        """Read a shape. ``read`` gives the text of the file a trace names."""
        return Load(text.strip(), _Words(text).shape(read))

    def segments(self, until_s: float) -> tuple[Segment, ...]:
        """The shape up to a horizon, cut off there. After it, the rate at the horizon holds."""
        require_positive("the horizon of a load", until_s)
        too_many = f"the load {self.text!r} has more than {MAX_SEGMENTS} pieces in {until_s:g} s"
        require(_least_pieces(self.shape, until_s) <= MAX_SEGMENTS, too_many)  # before any of them is made
        found: list[Segment] = []
        for piece in self.shape.pieces():
            if piece.start_s >= until_s:
                break
            require(len(found) < MAX_SEGMENTS, too_many)
            found.append(piece if piece.end_s <= until_s else _cut(piece, until_s))
        end_s = found[-1].end_s if found else 0.0
        if self.shape.last_rate is not None and end_s < until_s:
            found.append(Segment(end_s, until_s, self.shape.last_rate, self.shape.last_rate))
        return tuple(found)

    def schedule(self, until_s: float) -> Schedule:
        return Schedule(self.segments(until_s))


def _least_pieces(shape: Shape, until_s: float) -> float:
    if isinstance(shape, Noisy | Random):
        return until_s / shape.every_s
    if isinstance(shape, InBatches):
        return min(shape.count, until_s / shape.every_s)
    return until_s / shape.period_s if isinstance(shape, OnOff) else 0.0


def _cut(piece: Segment, end_s: float) -> Segment:
    rate_end = piece.rate_start + piece.slope * (end_s - piece.start_s)
    return Segment(piece.start_s, end_s, piece.rate_start, max(0.0, rate_end))


def parse_duration_s(text: str) -> float:
    """``250ms``, ``60s``, ``1.5m``, ``2h``, in seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadInput(f"{text!r} is not a time; write a number and ms, s, m or h, for example 60s")
    value = float(match[1]) * _UNIT_S[match[2]]
    require(math.isfinite(value), f"{text!r} is longer than any run")
    return value


def parse_rate(text: str) -> float:
    if re.fullmatch(_NUMBER, text) is None or float(text) > _MAX_RATE:
        raise BadInput(f"{text!r} is not a rate; write rows a second as a number from 0 to {_MAX_RATE:g}")
    return float(text)


class _Words:
    """The words of a load, each with its column, so that an error can say where."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [(m.start() + 1, m[0]) for m in re.finditer(r"\S+", text)]
        self.next = 0

    def wrong(self, column: int, sentence: str) -> BadInput:
        return BadInput(f"load {self.text!r}, column {column}: {sentence}")

    def take(self, wanted: str) -> tuple[int, str]:
        if self.next == len(self.words):
            raise self.wrong(len(self.text) + 1, f"{wanted} is missing")
        self.next += 1
        return self.words[self.next - 1]

    def value(self, column: int, text: str, parse: Callable[[str], T]) -> T:
        try:
            return parse(text)
        except BadInput as error:
            raise self.wrong(column, str(error)) from None

    def done(self) -> None:
        if self.next < len(self.words):
            column, word = self.words[self.next]
            raise self.wrong(column, f"nothing is expected here, but there is {word!r}")

    def shape(self, read: Callable[[str], str]) -> Shape:
        column, kind = self.take(f"the shape ({_SHAPES})")
        found: Steps | Ramp | OnOff | Random | InBatches
        if kind == "constant":
            found = Steps(((0.0, self.value(*self.take("the rate"), parse_rate)),))
        elif kind == "steps":
            found = Steps(self.points())
        elif kind == "ramp":
            found = Ramp(self.points())
        elif kind == "onoff":
            found = self.onoff()
        elif kind == "random":
            found = self.random()
        elif kind == "batches":
            found = self.batches()
        elif kind == "trace":
            found = self.trace(read)
        else:
            raise self.wrong(column, f"{kind!r} is not a shape; write {_SHAPES}")
        noisy = self.noise(found) if self.is_next(_NOISE) else found
        self.done()
        return noisy

    def is_next(self, word: str) -> bool:
        return self.next < len(self.words) and self.words[self.next][1] == word

    def noise(self, shape: Steps | Ramp | OnOff | Random | InBatches) -> Noisy:
        self.take(_NOISE)
        column, word = self.take("the part by which rates are off, for example 0.05,")
        part = self.value(column, word, _parse_share)
        if shape.highest * (1.0 + part) > _MAX_RATE:
            raise self.wrong(
                column, f"{shape.highest:g} and a part of {word} more is above {_MAX_RATE:g} rows a second"
            )
        return Noisy(shape, part, self.every(), self.value(*self.named("seed"), _parse_seed))

    def every(self) -> float:
        column, word = self.take("every")
        if word != "every":
            raise self.wrong(column, f"'every' is expected here, not {word!r}")
        return self.value(*self.take("the time between changes"), _parse_span_s)

    def points(self) -> tuple[Point, ...]:
        points: list[Point] = []
        while (self.next < len(self.words) and not self.is_next(_NOISE)) or not points:
            column, word = self.take("a point, for example 0s=500,")
            time, sign, rate = word.partition("=")
            if not sign:
                raise self.wrong(column, f"{word!r} is not a point; write time=rate, for example 0s=500")
            time_s = self.value(column, time, parse_duration_s)
            if points and time_s <= points[-1][0]:
                raise self.wrong(column, f"{time!r} does not come after the point before it")
            points.append((time_s, self.value(column + len(time) + 1, rate, parse_rate)))
        return tuple(points)

    def named(self, name: str) -> tuple[int, str]:
        column, word = self.take(f"{name}=")
        if not word.startswith(f"{name}="):
            raise self.wrong(column, f"{name}= is expected here, not {word!r}")
        return column + len(name) + 1, word[len(name) + 1 :]

    def onoff(self) -> OnOff:
        high = self.value(*self.named("high"), parse_rate)
        low = self.value(*self.named("low"), parse_rate)
        share = self.value(*self.named("share"), _parse_share)
        return OnOff(high, low, share, self.value(*self.named("period"), _parse_span_s))

    def random(self) -> Random:
        column, word = self.take("a range, for example 1..25,")
        match = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", word)
        if match is None or int(match[1]) > int(match[2]):
            raise self.wrong(column, f"{word!r} is not a range; write least..most in whole numbers, for example 1..25")
        column, word = self.take("the factor, for example x200,")
        if not word.startswith("x"):
            raise self.wrong(column, f"{word!r} is not a factor; write x and a number, for example x200")
        times = self.value(column + 1, word[1:], parse_rate)
        if int(match[2]) * times > _MAX_RATE:
            raise self.wrong(column, f"{match[2]} times {word[1:]} is above {_MAX_RATE:g} rows a second")
        every_s = self.every()
        seed = self.value(*self.named("seed"), _parse_seed)
        return Random(int(match[1]), int(match[2]), times, every_s, seed)

    def batches(self) -> InBatches:
        column, word = self.named("rows")
        rows = self.value(column, word, _parse_count)
        every_s = self.value(*self.named("every"), _parse_span_s)
        count = self.value(*self.named("count"), _parse_count)
        at, span = self.named("within")
        within_s = self.value(at, span, _parse_span_s)
        if within_s > every_s:
            raise self.wrong(at, f"a batch cannot be sent within {span}, which is longer than its period")
        if rows / within_s > _MAX_RATE:
            raise self.wrong(column, f"{word} rows within {span} are above {_MAX_RATE:g} rows a second")
        return InBatches(float(rows), every_s, count, within_s)

    def trace(self, read: Callable[[str], str]) -> Steps:
        column, _ = self.take("the file")
        path = self.text[column - 1 :].strip()  # a path may hold spaces
        self.next = len(self.words)
        try:
            content = read(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise self.wrong(column, f"the file {path!r} cannot be read: {reason}") from None
        return Steps(_parse_trace(path, content))


def _parse_span_s(text: str) -> float:
    value = parse_duration_s(text)
    require(value > 0, f"{text!r} must be above 0")
    return value


def _parse_share(text: str) -> float:
    if re.fullmatch(_NUMBER, text) is None or float(text) > 1:
        raise BadInput(f"{text!r} is not a share; write a number from 0 to 1")
    return float(text)


def _parse_count(text: str) -> int:
    if re.fullmatch(r"\d{1,9}", text) is None or int(text) < 1:
        raise BadInput(f"{text!r} is not a count; write a whole number from 1 to 999999999")
    return int(text)


def _parse_seed(text: str) -> int:
    if re.fullmatch(r"\d{1,19}", text) is None or int(text) >= 2**63:
        raise BadInput(f"{text!r} is not a seed; write a whole number from 0 to 2^63 - 1")
    return int(text)


def _parse_trace(path: str, content: str) -> tuple[Point, ...]:
    points: list[Point] = []
    header_allowed = True
    for number, line in enumerate(content.splitlines(), start=1):
        fields = [f.strip() for f in line.partition("#")[0].split(",")]
        if fields == [""]:
            continue
        here = f"{path}, line {number}"
        is_header = header_allowed and not any(re.match(r"[-+.\d]", f) for f in fields)
        header_allowed = False
        if is_header:
            continue
        if len(fields) != 2 or re.fullmatch(_NUMBER, fields[0]) is None:
            raise BadInput(f"{here}: {line.strip()!r} is not seconds,rate")
        try:
            point = (float(fields[0]), parse_rate(fields[1]))
        except BadInput as error:
            raise BadInput(f"{here}: {error}") from None
        require(math.isfinite(point[0]), f"{here}: {fields[0]!r} is longer than any run")
        require(
            not points or point[0] > points[-1][0],
            f"{here}: {fields[0]} does not come after the line before it",
        )
        points.append(point)
    require(len(points) > 0, f"{path} has no line seconds,rate")
    return tuple(points)
