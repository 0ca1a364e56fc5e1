"""Rows that left a topology, by centisecond since 1970, over the last hour; centiseconds without rows are left out.

A run reports a hundred such numbers a second. In arrays an hour of them takes 1.5 MB; in a dict it would take 40 MB.
Each array holds one minute: a single array that grew would be copied again and again and would fragment the memory of
the process. The wall clock may be set back: counts that are all older than the hour are then the newest, and the later
ones stay as long as there is room.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView

import numpy as np
from numpy.typing import NDArray

MOST_CENTISECONDS = 360_000  # an hour
PIECE_CENTISECONDS = 6_000


class OutputCounts(Mapping[int, int]):
    """Centisecond -> rows. Counts older than the newest by more than ``most`` are dropped, a minute at a time; of those
    from before the clock was set back, the minutes that were counted longest ago go first."""

    def __init__(self, most: int = MOST_CENTISECONDS) -> None:
        self._most = most
        self._pieces: dict[int, NDArray[np.int32]] = {}  # by minute since 1970, as they were last put
        self._newest = 0
        self._dropped = 0

    def put(self, centiseconds: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """These centiseconds have so many rows in all, as far as it is known now."""
        if not len(centiseconds):
            return
        latest = int(centiseconds.max())
        if latest > self._newest or latest <= self._newest - self._most:
            self._newest = latest
        numbers, at = np.divmod(centiseconds, PIECE_CENTISECONDS)
        kept = centiseconds > self._newest - self._most
        for number in np.unique(numbers[kept]).tolist():
            piece = self._pieces.pop(number, None)
            if piece is None:
                piece = np.zeros(PIECE_CENTISECONDS, dtype=np.int32)
            self._pieces[number] = piece  # the last
            mine = kept & (numbers == number)
            piece[at[mine]] = rows[mine]
        oldest = (self._newest - self._most) // PIECE_CENTISECONDS
        for old in [n for n in self._pieces if n < oldest]:
            self._drop(old)
        while len(self._pieces) > self._most // PIECE_CENTISECONDS + 2:
            self._drop(next(iter(self._pieces)))

    def _drop(self, number: int) -> None:
        self._dropped += int(self._pieces.pop(number).sum())

    def update(self, counts: Mapping[int, int]) -> None:
        """Like ``put``."""
        self.put(np.fromiter(counts.keys(), np.int64), np.fromiter(counts.values(), np.int64))

    def add(self, more: "OutputCounts") -> None:
        """So many rows in addition, by centisecond."""
        for number, piece in more._pieces.items():
            at, mine = np.flatnonzero(piece), self._pieces.get(number)
            rows = piece if mine is None else piece + mine
            self.put(at + number * PIECE_CENTISECONDS, rows[at].astype(np.int64))

    @property
    def total(self) -> int:
        return sum(int(piece.sum()) for piece in self._pieces.values())

    @property
    def total_ever(self) -> int:
        """With those that were dropped."""
        return self.total + self._dropped

    def between(self, start: int, end: int) -> int:
        """Rows from start on, before end."""
        found = 0
        for number, piece in self._pieces.items():
            first = number * PIECE_CENTISECONDS
            found += int(piece[max(0, start - first) : max(0, end - first)].sum())
        return found

    def news_for(self, known: "OutputCounts") -> dict[int, int]:
        """Counts that ``known`` does not have, or has as another number. It costs little, however long the hour."""
        found: dict[int, int] = {}
        for number in sorted(self._pieces):
            piece, old = self._pieces[number], known._pieces.get(number)
            at = np.flatnonzero(piece if old is None else (piece != old) & (piece != 0))
            found.update(zip((at + number * PIECE_CENTISECONDS).tolist(), piece[at].tolist(), strict=True))
        return found

    def as_dict(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for number in sorted(self._pieces):
            piece = self._pieces[number]
            at = np.flatnonzero(piece)
            found.update(zip((at + number * PIECE_CENTISECONDS).tolist(), piece[at].tolist(), strict=True))
        return found

    def __getitem__(self, centisecond: int) -> int:
        number, at = divmod(centisecond, PIECE_CENTISECONDS)
        piece = self._pieces.get(number)
        if piece is None or not piece[at]:
            raise KeyError(centisecond)
        return int(piece[at])

    def __iter__(self) -> Iterator[int]:
        for number in sorted(self._pieces):
            yield from (np.flatnonzero(self._pieces[number]) + number * PIECE_CENTISECONDS).tolist()

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(piece)) for piece in self._pieces.values())

    def items(self) -> ItemsView[int, int]:
        return self.as_dict().items()

    def values(self) -> ValuesView[int]:
        return self.as_dict().values()
