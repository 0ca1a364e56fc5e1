"""Runs beside each other as one picture: load, CPU, latency and decisions over time. It reads values and draws them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from barograph.experiments.canvas import Canvas, Color, text_width

GREY, LIGHT = (110, 110, 110), (226, 226, 226)
BLUE, ORANGE, GREEN, RED, VIOLET = (31, 104, 180), (230, 120, 20), (30, 140, 60), (200, 40, 40), (120, 70, 160)
WIDTH, PANEL_HIGH, GAP, LEFT, TOP = 560, 170, 46, 74, 76
_SCALE = 2


Point = tuple[float, float | None]
"""(second, value); None where nothing is known."""


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    color: Color
    points: tuple[Point, ...]
    steps: bool = False  # each value holds until the next


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph. log: of times, which range over orders of magnitude."""

    title: str
    series: tuple[Series, ...]
    log: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """One run. decisions: seconds at which instances were moved or rescaled. line: what came of it, in words."""

    title: str
    line: str
    panels: tuple[Panel, ...]
    decisions: tuple[float, ...]


def draw(stories: Sequence[Story], seconds: float, path: Path) -> None:
    """A column for each run; a panel has the same scale in all of them."""
    rows = len(stories[0].panels)
    canvas = Canvas(
        len(stories) * (WIDTH + LEFT) + 40, TOP + rows * (PANEL_HIGH + GAP) + 30
    )  # fmt: skip
    canvas.box(LEFT, canvas.height - 16, LEFT + 14, canvas.height - 13, VIOLET, 0.5)
    canvas.text(LEFT + 18, canvas.height - 18, "a decision that moved or rescaled instances", GREY)
    for column, story in enumerate(stories):
        x0 = LEFT + column * (WIDTH + LEFT)
        canvas.text(x0, 14, story.title, size=_SCALE)
        canvas.text(x0, 38, story.line, GREY, 1)
        for row, panel in enumerate(story.panels):
            scale = _scale([s.panels[row] for s in stories])
            y0 = TOP + row * (PANEL_HIGH + GAP)
            _panel(canvas, panel, story.decisions, (x0, y0), seconds, scale)
    canvas.save(path)


@dataclass(frozen=True, slots=True)
class _Scale:
    ticks: tuple[float, ...]
    place: Callable[[float], float]  # 0 at the bottom, 1 at the top


def _scale(panels: Sequence[Panel]) -> _Scale:
    values = [v for p in panels for s in p.series for _, v in s.points if v is not None]
    most = max(values, default=1.0) or 1.0
    if panels[0].log:
        low = math.floor(math.log10(max(1.0, min((v for v in values if v > 0), default=1.0))))
        high = max(low + 1, math.ceil(math.log10(most)))
        ticks = tuple(10.0**k for k in range(low, high + 1))
        return _Scale(ticks, lambda v: (math.log10(max(v, 10.0**low)) - low) / (high - low))
    step = 10 ** math.floor(math.log10(most))
    step = next(step * f for f in (0.2, 0.25, 0.5, 1.0, 2.0) if most / (step * f) <= 5)
    top = step * math.ceil(most / step)
    return _Scale(tuple(step * k for k in range(round(top / step) + 1)), lambda v: v / top)


def _panel(
    canvas: Canvas, panel: Panel, decisions: Sequence[float], at: tuple[int, int], seconds: float, scale: _Scale
) -> None:
    x0, y0 = at
    bottom = y0 + PANEL_HIGH

    def x(second: float) -> float:
        return x0 + WIDTH * min(max(second, 0.0), seconds) / seconds

    def y(value: float) -> float:
        return bottom - PANEL_HIGH * min(max(scale.place(value), 0.0), 1.0)

    canvas.text(x0, y0 - 14, panel.title)
    right = x0 + WIDTH
    for series in reversed(panel.series):
        right -= text_width(series.name) + 26
        canvas.box(right, y0 - 12, right + 14, y0 - 9, series.color)
        canvas.text(right + 18, y0 - 14, series.name, GREY)
    for tick in scale.ticks:
        canvas.box(x0, y(tick) - 0.5, x0 + WIDTH, y(tick) + 0.5, LIGHT)
        canvas.text(x0 - 6, y(tick) - 3, f"{tick:,.0f}", GREY, align=1)
    for tick_s in range(0, int(seconds) + 1, _every(seconds)):
        canvas.box(x(tick_s) - 0.5, y0, x(tick_s) + 0.5, bottom, LIGHT)
        canvas.text(x(tick_s), bottom + 6, f"{tick_s} s", GREY, align=0.5)
    for second in decisions:
        canvas.box(x(second) - 0.75, y0, x(second) + 0.75, bottom, VIOLET, 0.5)
    for series in panel.series:
        _curve(canvas, series, x, y)


def _curve(canvas: Canvas, series: Series, x: Callable[[float], float], y: Callable[[float], float]) -> None:
    run: list[tuple[float, float]] = []
    for second, value in (*series.points, (0.0, None)):
        if value is None:
            canvas.line(run, series.color)
            run = []
            continue
        if series.steps and run:
            run.append((x(second), run[-1][1]))
        run.append((x(second), y(value)))


def _every(seconds: float) -> int:
    return next(step for step in (5, 10, 20, 30, 60, 120, 300, 600, 3600) if seconds / step <= 8 or step == 3600)
