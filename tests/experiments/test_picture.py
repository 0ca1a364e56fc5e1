"""A picture as a file: readable by whoever reads PNG, with its curves where they belong."""

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from barograph.experiments.canvas import Canvas
from barograph.experiments.letters import HIGH, WIDE, written
from barograph.experiments.picture import BLUE, RED, VIOLET, Panel, Series, Story, draw


def dots_of(png: bytes) -> NDArray[np.uint8]:
    """Read it back by the rules of the format: signature, chunks with their checksums, unfiltered rows."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + length
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + width * 3)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def near(dots: NDArray[np.uint8], color: tuple[int, int, int]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (np.abs(dots.astype(int) - np.array(color)).sum(axis=2) < 30).astype(bool)
    return found


def test_a_canvas_read_back() -> None:
    canvas = Canvas(40, 20)
    canvas.box(10, 5, 20, 10, BLUE)
    dots = dots_of(canvas.png())
    assert dots.shape == (20, 40, 3)
    assert near(dots, BLUE).sum() == 50
    assert near(dots, BLUE)[5:10, 10:20].all()


def test_letters() -> None:
    assert written("I1").shape == (HIGH, 2 * (WIDE + 1))
    assert (written("abc") == written("ABC")).all()
    dots = {c: written(c).tobytes() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;-+%/()=<>"}
    assert len(set(dots.values())) == len(dots), "two letters look the same"
    assert all(written(c).any() for c in dots)
    assert not written(" ").any()


def test_curves_and_decisions(tmp_path: Path) -> None:
    flat = Series("low", BLUE, ((0.0, 10.0), (100.0, 10.0)))
    gap = Series("high", RED, ((0.0, 100.0), (40.0, 100.0), (45.0, None), (60.0, 100.0), (100.0, 100.0)))
    story = Story("one", "a line", (Panel("values", (flat, gap)),), (50.0,))
    draw([story, story], 100.0, tmp_path / "x.png")
    dots = dots_of((tmp_path / "x.png").read_bytes())[70:]  # below the legend
    pale = ((VIOLET[0] + 255) // 2, (VIOLET[1] + 255) // 2, (VIOLET[2] + 255) // 2)
    low, high, decided = (np.argwhere(near(dots, c)) for c in (BLUE, RED, pale))
    assert low[:, 0].min() > high[:, 0].max(), "the larger value is drawn higher"
    columns = np.unique(high[:, 1])
    assert np.diff(columns).max() > 60, "nothing is drawn where nothing is known"
    assert len(decided) > 200
