"""The rows waiting for one operator, and its progress since the last commit.

Rows are columns of an array of four lines: ``ARRIVE`` when the row is there, ``DUE`` when it fell due at its source,
``READ`` when its source read it, ``WORK`` CPU seconds to execute it. ``of`` has the instance of each column.
"""

import math

import numpy as np

from barograph.engines.sim.grains.due import DueTimes
from barograph.engines.sim.world.layout import Floats, Ints

ARRIVE, DUE, READ, WORK = range(4)
_MOST_UNREAD = 4_000_000  # more unread rows than this are grouped when a run ends


class RowQueue:
    """rows, of: rows that wait, by instance, then by arrival. inbox: rows that were sent since and are not in order.

    free_s: when each instance is free. sent, done: rows sent to the operator and executed by it.
    Of a source: seen, read: rows of each instance that fell due, and that were read; skipped: rows never made, of a
    live source that stood still. given_up: rows that a failing move gave up.
    """

    def __init__(self, n: int, now_s: float) -> None:
        self.rows, self.of = no_rows()
        self.inbox: list[tuple[Floats, Ints]] = []
        self.free_s: Floats = np.full(n, now_s)
        self.read = np.zeros(n, dtype=np.int64)
        self.seen = np.zeros(n, dtype=np.int64)
        self.skipped = self.sent = self.done = self.given_up = 0
        self._read_committed = np.zeros(n, dtype=np.int64)
        self._skipped_committed = self._sent_committed = self._done_committed = 0

    def resized(self, n: int, now_s: float) -> "RowQueue":
        """The same operator with another number of instances; nothing waits before it."""
        fresh = RowQueue(n, now_s)
        fresh.sent, fresh._sent_committed = self.sent, self._sent_committed
        fresh.done, fresh._done_committed = self.done, self._done_committed
        fresh.given_up = self.given_up
        return fresh

    def skip(self, due: Ints) -> None:
        """Rows that fell due up to now are never made."""
        self.read = self.read + due - self.seen
        self.skipped += int((due - self.seen).sum())
        self.seen = due

    def waiting(self) -> int:
        return self.of.size + sum(of.size for _, of in self.inbox)

    def waiting_by_instance(self, n: int) -> Ints:
        count = np.bincount(self.of, minlength=n)
        for _, of in self.inbox:
            count = count + np.bincount(of, minlength=n)
        return count

    def in_order(self) -> tuple[Floats, Ints]:
        """All rows that wait, by instance, then by arrival."""
        if not self.inbox:
            return self.rows, self.of
        rows = np.concatenate([self.rows, *(r for r, _ in self.inbox)], axis=1)
        of = np.concatenate([self.of, *(i for _, i in self.inbox)])
        self.inbox = []
        # Each sender's rows are in order of time already: sorting by instance first is cheap on small numbers, and
        # leaves a few ordered runs to merge.
        arrive = rows[ARRIVE]
        by_instance = np.argsort(of.astype(np.uint16), kind="stable")
        key = (of * (arrive.max() + 1.0) + arrive).take(by_instance)
        order = by_instance.take(np.argsort(key, kind="stable"))
        return rows.take(order, axis=1), of.take(order)

    def due_of_waiting(self) -> Floats:
        """When each row that waits fell due."""
        found: Floats = self.in_order()[0][DUE] if self.inbox else self.rows[DUE]
        return found

    def commit(self) -> None:
        self._read_committed = self.read.copy()
        self._sent_committed, self._done_committed = self.sent, self.done
        self._skipped_committed = self.skipped

    def fail(self, now_s: float) -> None:
        """Back to the last commit; no row is in flight."""
        self._empty()
        self.free_s = np.full(self.free_s.size, now_s)
        self.read = self._read_committed.copy()
        self.sent, self.done = self._sent_committed, self._done_committed
        self.skipped = self._skipped_committed

    def abandon(self, due: Ints | None) -> int:
        """Give up all rows that wait, and say how many they are. due: of a source, rows of each instance due by now."""
        if due is None:
            rows = self.waiting()
            self._empty()
        else:
            self.seen = due
            rows = int((due - self.read).sum())
            self.read = due.copy()
        self.given_up += rows
        return rows

    def _empty(self) -> None:
        self.rows, self.of = no_rows()
        self.inbox = []

    def missing(self, due: Ints | None) -> int:
        """Rows that are neither executed, nor given up, nor waiting: must be 0. due: as for ``abandon``."""
        if due is None:
            return abs(self.sent - self.done - self.given_up - self.waiting())
        ended = self.done + self.given_up + self.skipped
        return int(np.abs(due - self.seen).sum()) + abs(ended - int(self.read.sum()))

    def unread(self, due_times: DueTimes) -> tuple[Floats, Floats]:
        """When the rows that a source has not read fell due, and how many rows each of these moments stands for.

        A huge backlog is given as groups of consecutive rows, each with the moment of its middle row.
        """
        count = self.seen - self.read
        together = max(1, math.ceil(count.sum() / _MOST_UNREAD))
        groups = -(-count // together)
        of = np.repeat(np.arange(count.size), groups)
        first = (np.arange(of.size) - (np.cumsum(groups) - groups)[of]) * together
        rows = np.minimum(together, count[of] - first)
        return due_times.due_s(of, self.read[of] + first + (rows - 1) / 2), rows


def no_rows() -> tuple[Floats, Ints]:
    return np.empty((4, 0)), np.empty(0, dtype=np.intp)
