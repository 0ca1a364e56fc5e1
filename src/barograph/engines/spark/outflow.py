"""Rows that left a topology, by 10 ms since 1970: a mapping of the moments in which some did, over the last hour.

A run reports a hundred such numbers a second. Kept as plain numbers side by side they take 1.5 MB an hour; in a dict
they would take forty, and a driver that is watched would grow for as long as it lives. They are in pieces of a minute:
one that grew would be copied again and again, and leave holes of its former sizes in the process.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView

import numpy as np
from numpy.typing import NDArray

MOST_TENTHS = 360_000  # an hour
PIECE_TENTHS = 6_000


class Outflow(Mapping[int, int]):
    """Moment -> rows. What is older than the newest by more than ``most`` is forgotten, some of it a while later."""

    def __init__(self, most: int = MOST_TENTHS) -> None:
        self._most = most
        self._pieces: dict[int, NDArray[np.int32]] = {}  # by their number since 1970; only those with rows
        self._newest = 0

    def add(self, tenth: int, rows: int) -> None:
        if rows <= 0 or tenth <= self._newest - self._most:
            return
        number, at = divmod(tenth, PIECE_TENTHS)
        piece = self._pieces.get(number)
        if piece is None:
            piece = self._pieces[number] = np.zeros(PIECE_TENTHS, dtype=np.int32)
        piece[at] += rows
        if tenth > self._newest:
            self._newest = tenth
            oldest = (tenth - self._most) // PIECE_TENTHS
            for old in [n for n in self._pieces if n < oldest]:
                del self._pieces[old]

    @property
    def total(self) -> int:
        return sum(int(piece.sum()) for piece in self._pieces.values())

    def between(self, start: int, end: int) -> int:
        """Rows from start on, before end."""
        found = 0
        for number, piece in self._pieces.items():
            first = number * PIECE_TENTHS
            found += int(piece[max(0, start - first) : max(0, end - first)].sum())
        return found

    def as_dict(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for number in sorted(self._pieces):
            piece = self._pieces[number]
            at = np.flatnonzero(piece)
            found.update(zip((at + number * PIECE_TENTHS).tolist(), piece[at].tolist(), strict=True))
        return found

    def __getitem__(self, tenth: int) -> int:
        number, at = divmod(tenth, PIECE_TENTHS)
        piece = self._pieces.get(number)
        if piece is None or not piece[at]:
            raise KeyError(tenth)
        return int(piece[at])

    def __iter__(self) -> Iterator[int]:
        for number in sorted(self._pieces):
            yield from (np.flatnonzero(self._pieces[number]) + number * PIECE_TENTHS).tolist()

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(piece)) for piece in self._pieces.values())

    def items(self) -> ItemsView[int, int]:
        return self.as_dict().items()

    def values(self) -> ValuesView[int]:
        return self.as_dict().values()
