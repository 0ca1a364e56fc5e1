"""One picture of several runs over the same time: a column for each run, a row for each panel, the decisions on top.

It draws the values that it is given with matplotlib (the extra ``charts``) and computes none. It uses figures directly,
without pyplot, so that it neither needs a display nor changes the caller's matplotlib settings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barograph.model import BadInput

if TYPE_CHECKING:  # an optional extra: imported only when something is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart, and two greys.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#767676"
TEXT, GRID = "#222222", "#E3E3E3"
COLUMN_IN, PANEL_IN, LABEL_IN, DPI = 7.6, 1.75, 0.2, 120
LABEL_CHARACTERS = 92  # that fit side by side in a column

Point = tuple[float, float | None]
"""(second, value); None where the value is not known: the curve has a gap there."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve. steps: each value holds until the next. dashed: so that a curve under it stays visible."""

    name: str
    color: str
    points: tuple[Point, ...]
    steps: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph. log: values range over orders of magnitude. whole: only whole numbers are marked on its axis."""

    title: str
    unit: str
    series: tuple[Series, ...]
    log: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was decided or done at a moment."""

    at_s: float
    label: str


@dataclass(frozen=True, slots=True)
class Story:
    """One run. line: its results in words, at most two lines of about ninety letters."""

    title: str
    line: str
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...] = ()


def require_matplotlib() -> None:
    """BadInput where the extra is not installed: ask before a long run, not after it."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise BadInput("the chart needs matplotlib: pip install 'barograph[charts]'") from None


def draw(title: str, stories: Sequence[Story], seconds: float, path: Path) -> None:
    """Save the picture as PNG. BadInput where matplotlib is missing."""
    figure(title, stories, seconds).savefig(path, dpi=DPI, format="png")


def figure(title: str, stories: Sequence[Story], seconds: float) -> "Figure":
    """All stories have the same panels; a panel has the same scale in all of them."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    labels = [labels_of(s.marks, seconds) for s in stories]
    strip_in = LABEL_IN * (1 + max((1 + label.row for found in labels for label in found), default=0))
    panels = stories[0].panels
    heights = [strip_in, *(PANEL_IN * (0.6 if p.whole else 1.0) for p in panels)]
    size = (COLUMN_IN * len(stories), sum(heights) + 0.55 * len(heights) + 1.1)
    found = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.06), facecolor="white")
    FigureCanvasAgg(found)
    found.suptitle(title, fontsize=15, color=TEXT)
    grid = found.subplots(
        len(heights), len(stories), sharex="all", sharey="row", squeeze=False, height_ratios=heights
    )  # fmt: skip
    for column, story in enumerate(stories):
        strip, *axes = grid[:, column]
        _strip(strip, story, labels[column], strip_in)
        for ax, panel in zip(axes, story.panels, strict=True):
            _panel(ax, panel)
            for mark in story.marks:
                ax.axvline(mark.at_s, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        axes[-1].set_xlabel("seconds since the load began", color=TEXT)
        axes[-1].set_xlim(0, seconds)
    for row, panel in enumerate(panels):  # after all runs: setting limits ends the automatic scaling
        grid[1 + row, 0].set_ylim(_decades([s.panels[row] for s in stories]) if panel.log else (0, None))
    return found


def _decades(panels: Sequence[Panel]) -> tuple[float, float]:
    """Whole powers of ten around all values, so that a logarithmic axis has at least two numbers on it."""
    values = [value for p in panels for s in p.series for _, value in s.points if value is not None and value > 0]
    low = math.floor(math.log10(min(values, default=1.0)))
    high = math.ceil(math.log10(max(values, default=1.0)))
    return 10.0**low, 10.0 ** max(high, low + 1)


@dataclass(frozen=True, slots=True)
class Label:
    """Where a mark's words stand. row: counted from the axis. leftwards: they end at the mark, near the right edge."""

    mark: Mark
    row: int
    leftwards: bool


def labels_of(marks: Sequence[Mark], seconds: float) -> list[Label]:
    """Rows are chosen so that no label covers another."""
    ends: list[float] = []  # of each row, the second at which its last label ends
    found = []
    for mark in sorted(marks, key=lambda m: m.at_s):
        width_s = seconds * (len(mark.label) + 3) / LABEL_CHARACTERS
        leftwards = mark.at_s + width_s > seconds
        start = mark.at_s - width_s if leftwards else mark.at_s
        row = next((k for k, end in enumerate(ends) if end <= start), len(ends))
        ends[row : row + 1] = [start + width_s]
        found.append(Label(mark, row, leftwards))
    return found


def _strip(ax: "Axes", story: Story, labels: Sequence[Label], strip_in: float) -> None:
    """The run's name and results, and below them a label at the moment of each decision."""
    ax.set_title(f"{story.title}\n\n", loc="left", fontsize=13, fontweight="bold", color=TEXT)
    ax.annotate(story.line, (0, 1), (0, 5), "axes fraction", "offset points", fontsize=9, color=TEXT)
    ax.set_ylim(0, strip_in)
    ax.set_yticks([])
    ax.tick_params(bottom=False, labelbottom=False)
    ax.set_ylabel("decisions", rotation=0, ha="right", va="center", color=TEXT, fontsize=9)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    for label in labels:
        at_s, y = label.mark.at_s, LABEL_IN * (label.row + 0.6)
        ax.plot([at_s, at_s], [0, y], color=GREY, linewidth=0.9, linestyle=(0, (2, 2)))
        ax.plot([at_s], [y], marker="o", markersize=3.5, color=TEXT)
        away, side = (-5, "right") if label.leftwards else (5, "left")
        ax.annotate(
            label.mark.label, (at_s, y), (away, 0), "data", "offset points", fontsize=9, ha=side, va="center",
            color=TEXT,
        )  # fmt: skip


def _panel(ax: "Axes", panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for series in panel.series:
        seconds = [at_s for at_s, _ in series.points]
        values = [math.nan if value is None else value for _, value in series.points]
        ax.plot(
            seconds, values, label=series.name, color=series.color, linewidth=1.7,
            linestyle="--" if series.dashed else "-", drawstyle="steps-post" if series.steps else "default",
            zorder=3 if series.dashed else 2,
        )  # fmt: skip
    if panel.log:
        ax.set_yscale("log", nonpositive="mask")
    if panel.whole:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.yaxis.set_tick_params(labelleft=True)  # in every column, though the scale is shared
    ax.set_title(panel.title, loc="left", fontsize=10.5, color=TEXT)
    ax.set_ylabel(panel.unit, color=TEXT)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    # Above the panel, so that it hides no part of a curve.
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(panel.series), frameon=False, fontsize=9,
        handlelength=1.8, borderaxespad=0.0, columnspacing=1.4,
    )  # fmt: skip
