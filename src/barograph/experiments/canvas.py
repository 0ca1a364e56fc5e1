"""A picture of lines, boxes and letters on white, and its file: a PNG. It knows nothing of what is drawn."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from barograph.experiments.letters import HIGH, WIDE, written

Color = tuple[int, int, int]
FINE = 2  # it is drawn so many times larger, which makes lines smooth


@dataclass
class Canvas:
    """Positions are in dots of the finished picture, from the upper left corner."""

    width: int
    height: int
    dots: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        self.dots = np.full((self.height * FINE, self.width * FINE, 3), 255, dtype=np.float32)

    def box(self, x0: float, y0: float, x1: float, y1: float, color: Color, part: float = 1.0) -> None:
        """part: how much of the color, the rest is what was there."""
        rows = slice(max(0, round(y0 * FINE)), max(0, round(y1 * FINE)))
        columns = slice(max(0, round(x0 * FINE)), max(0, round(x1 * FINE)))
        spot = self.dots[rows, columns]
        self.dots[rows, columns] = spot * (1 - part) + np.array(color, dtype=np.float32) * part

    def line(self, points: Sequence[tuple[float, float]], color: Color, thick: float = 1.5) -> None:
        """Straight from point to point."""
        for (x0, y0), (x1, y1) in pairwise(points):
            steps = 1 + int(FINE * max(abs(x1 - x0), abs(y1 - y0)))
            half = thick / 2
            for k in range(steps + 1):
                x, y = x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps
                self.box(x - half, y - half, x + half, y + half, color)

    def text(
        self, x: float, y: float, words: str, color: Color = (40, 40, 40), size: int = 1, align: float = 0
    ) -> None:
        """The upper left corner; align 0.5: the middle, 1: the right end is at x."""
        dots = written(words)
        big = np.kron(dots, np.ones((size * FINE, size * FINE), dtype=bool))
        left = round(x * FINE - align * (big.shape[1] - size * FINE))
        top = round(y * FINE)
        spot = self.dots[top : top + big.shape[0], left : left + big.shape[1]]
        spot[big[: spot.shape[0], : spot.shape[1]]] = color

    def png(self) -> bytes:
        fine = self.dots.reshape(self.height, FINE, self.width, FINE, 3).mean(axis=(1, 3))
        rows = np.clip(np.rint(fine), 0, 255).astype(np.uint8).reshape(self.height, self.width * 3)
        raw = b"".join(b"\0" + row.tobytes() for row in rows)
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        parts = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(raw, 9)), _chunk(b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(parts)

    def save(self, path: Path) -> None:
        path.write_bytes(self.png())


def text_width(words: str, size: int = 1) -> int:
    return len(words) * (WIDE + 1) * size


def text_height(size: int = 1) -> int:
    return HIGH * size


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
