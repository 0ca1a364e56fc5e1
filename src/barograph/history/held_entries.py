"""Entries of a history that cannot be written now: kept in memory, oldest first, up to a bound. It writes nothing.

Beyond the bound the oldest go. What they were is remembered, so that the history says it once it can be written again.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from barograph.history.entry import Entry


@dataclass(frozen=True, slots=True)
class LostEntries:
    """Entries that were dropped, from the number first to last; first_ms, last_ms: when they were made."""

    first: int
    last: int
    first_ms: int
    last_ms: int


class HeldEntries:
    """most_bytes: of all entries together. The newest is kept whatever its size."""

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        self._held: deque[tuple[Entry, pa.Table]] = deque()
        self._bytes = 0
        self.lost: LostEntries | None = None

    def __len__(self) -> int:
        return len(self._held)

    def add(self, entry: Entry, table: pa.Table) -> None:
        self._held.append((entry, table))
        self._bytes += table.nbytes
        while self._bytes > self._most_bytes and len(self._held) > 1:
            self._lose(self.pop())

    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for entry, _ in self._held)

    def first(self) -> tuple[Entry, pa.Table]:
        return self._held[0]

    def number_from(self, number: int, table_of: Callable[[Entry], pa.Table]) -> int:
        """Give the oldest, also if it was dropped, at least this number. Returns by how much all numbers grew."""
        first = self.lost.first if self.lost else self._held[0][0].number
        by = max(0, number - first)
        if by:
            held = [_later(entry, first, by) for entry in self.entries()]
            self._held = deque((entry, table_of(entry)) for entry in held)
            if self.lost:
                self.lost = replace(self.lost, first=first + by, last=self.lost.last + by)
        return by

    def pop(self) -> Entry:
        """The oldest, which has been written."""
        entry, table = self._held.popleft()
        self._bytes -= table.nbytes
        return entry

    def _lose(self, entry: Entry) -> None:
        before = self.lost or LostEntries(entry.number, entry.number, entry.wall_ms, entry.wall_ms)
        self.lost = LostEntries(before.first, entry.number, before.first_ms, entry.wall_ms)


def _later(entry: Entry, first: int, by: int) -> Entry:
    """Also where it names entries from the first one on."""
    errors = tuple(replace(e, made_in=e.made_in + by) if e.made_in >= first else e for e in entry.errors)
    return replace(entry, number=entry.number + by, errors=errors)
