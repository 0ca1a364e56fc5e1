"""The chart in matplotlib: the values of its curves, its scales, its texts."""

import builtins
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.model import BadInput
from barograph.report.chart import (
    BLUE,
    GREEN,
    GREY,
    LABEL_CHARACTERS,
    ORANGE,
    RED,
    Label,
    Mark,
    Panel,
    Series,
    Story,
    draw,
    figure,
    labels_of,
)

LOW = Series("low", BLUE, ((0.0, 10.0), (100.0, 10.0)))
GAP = Series("high", RED, ((0.0, 100.0), (40.0, 100.0), (45.0, None), (60.0, 100.0)), steps=True, dashed=True)


def a_story(title: str, highest: float = 100.0) -> Story:
    panels = (
        Panel("Values", "rows/s", (LOW, GAP)),
        Panel("Latency", "ms", (Series("mean", BLUE, ((0.0, 1.0), (50.0, 1000.0), (60.0, 0.0))),), log=True),
        Panel("Nodes", "nodes", (Series("nodes", GREEN, ((0.0, 1.0), (50.0, highest))),), whole=True),
    )
    return Story(title, "what came of it", panels, (Mark(50.0, "split 2→3"), Mark(95.0, "kill executor@node-2")))


def test_curves_scales_and_words() -> None:
    found = figure("two runs", [a_story("one", 2.0), a_story("two", 7.0)], 100.0)
    assert found.get_suptitle() == "two runs"
    assert len(found.axes) == 2 * 4, "the decisions and three panels for each run"
    strips, values, latency, nodes = (found.axes[k : k + 2] for k in range(0, 8, 2))
    low, high, *_ = values[0].get_lines()
    assert np.asarray(low.get_ydata()).tolist() == [10.0, 10.0]
    assert np.asarray(high.get_xdata()).tolist() == [0.0, 40.0, 45.0, 60.0]
    assert math.isnan(np.asarray(high.get_ydata())[2]), "a gap where nothing is known"
    assert (high.get_drawstyle(), high.get_linestyle(), high.get_color()) == ("steps-post", "--", RED)
    assert [ax.get_ylabel() for ax in found.axes[2::2]] == ["rows/s", "ms", "nodes"]
    assert latency[0].get_yscale() == "log"
    assert latency[0].get_ylim() == (1.0, 1000.0), "a value of 0 has no place on a logarithmic axis"
    assert values[0].get_ylim()[0] == 0.0
    assert nodes[0].get_ylim() == nodes[1].get_ylim(), "the same scale in both runs"
    assert nodes[0].get_ylim()[1] >= 7.0
    assert {ax.get_xlim() for ax in found.axes} == {(0.0, 100.0)}, "one time axis"
    assert {t.get_text() for t in strips[0].texts} == {"what came of it", "split 2→3", "kill executor@node-2"}
    assert {np.asarray(mark.get_xdata())[0] for mark in values[0].get_lines()[2:]} == {50.0, 95.0}


def test_a_legend_hides_no_part_of_a_panel() -> None:
    found = figure("a run", [a_story("one")], 100.0)
    found.draw_without_rendering()
    panels = found.axes[1:]
    assert len(panels) == 3
    for ax in panels:
        legend = ax.get_legend()
        assert legend is not None
        assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 0.5


def test_a_file(tmp_path: Path) -> None:
    draw("a run", [a_story("one")], 100.0, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_run_without_values_and_decisions() -> None:
    nothing = Story("none", "", (Panel("Latency", "ms", (Series("mean", BLUE, ((0.0, None),)),), log=True),))
    found = figure("nothing", [nothing], 10.0)
    found.draw_without_rendering()
    strip, latency = found.axes
    assert [t.get_text() for t in strip.texts if t.get_text()] == []
    (line,) = latency.get_lines()
    assert np.isnan(np.asarray(line.get_ydata(), dtype=float)).all()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(BadInput, match=r"pip install 'barograph\[charts\]'"):
        figure("a run", [a_story("one")], 100.0)


def test_colours_differ_in_lightness_or_hue() -> None:
    assert len({BLUE, ORANGE, GREEN, RED, GREY}) == 5


@given(st.lists(st.builds(Mark, st.floats(0, 60), st.text("ab", min_size=1, max_size=30)), max_size=20))
def test_no_label_covers_another(marks: list[Mark]) -> None:
    spans: dict[int, list[tuple[float, float]]] = {}
    for label in labels_of(marks, 60.0):
        spans.setdefault(label.row, []).append(span_s(label, 60.0))
    for row in spans.values():
        row.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(row))


def span_s(label: Label, seconds: float) -> tuple[float, float]:
    width_s = seconds * len(label.mark.label) / LABEL_CHARACTERS
    at_s = label.mark.at_s
    return (at_s - width_s, at_s) if label.leftwards else (at_s, at_s + width_s)
