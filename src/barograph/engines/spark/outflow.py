"""Rows that left a topology, by 10 ms since 1970: a mapping of the moments in which some did, over the last hour.

A run reports a hundred such numbers a second. Kept as plain numbers side by side they take 3 MB an hour; in a dict they
would take forty, and a driver that is watched would grow for as long as it lives.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView

import numpy as np

MOST_TENTHS = 360_000  # an hour
_ROOM = 6_000  # so much is added at a time


class Outflow(Mapping[int, int]):
    """Moment -> rows. What is older than the newest by more than ``most`` is forgotten, some of it a while later."""

    def __init__(self, most: int = MOST_TENTHS) -> None:
        self._most = most
        self._first = 0
        self._rows = np.zeros(0, dtype=np.int64)

    def add(self, tenth: int, rows: int) -> None:
        if rows <= 0:
            return
        if not len(self._rows):
            self._first = tenth
        if tenth < self._first:  # a late report of what is otherwise forgotten, or the first ones out of order
            if self._first + len(self._rows) - tenth > self._most:
                return
            self._rows = np.concatenate([np.zeros(self._first - tenth, dtype=np.int64), self._rows])
            self._first = tenth
        if tenth >= self._first + len(self._rows):
            missing = tenth + 1 - self._first - len(self._rows)
            if missing > self._most:  # nothing was put out for an hour
                self._first, self._rows, missing = tenth, np.zeros(0, dtype=np.int64), 1
            self._rows = np.concatenate([self._rows, np.zeros(missing + _ROOM, dtype=np.int64)])
            forgotten = max(0, tenth - self._most + 1 - self._first)
            self._rows, self._first = self._rows[forgotten:].copy(), self._first + forgotten
        self._rows[tenth - self._first] += rows

    @property
    def total(self) -> int:
        return int(self._rows.sum())

    def between(self, start: int, end: int) -> int:
        """Rows from start on, before end."""
        return int(self._rows[max(0, start - self._first) : max(0, end - self._first)].sum())

    def as_dict(self) -> dict[int, int]:
        at = np.flatnonzero(self._rows)
        return dict(zip((at + self._first).tolist(), self._rows[at].tolist(), strict=True))

    def __getitem__(self, tenth: int) -> int:
        at = tenth - self._first
        if not 0 <= at < len(self._rows) or not self._rows[at]:
            raise KeyError(tenth)
        return int(self._rows[at])

    def __iter__(self) -> Iterator[int]:
        return iter((np.flatnonzero(self._rows) + self._first).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._rows))

    def items(self) -> ItemsView[int, int]:
        return self.as_dict().items()

    def values(self) -> ValuesView[int]:
        return self.as_dict().values()
