"""Batches of rows: when all rows of each have reached a sink, for the latencies of Chakraborty's evaluation.

A source whose load is in batches sends one batch at the start of each period. A batch has ended when the last of
its rows has reached a sink; its time runs from the moment the last of its rows was sent. Rows of an epoch that is lost
are replayed, and count then. A row's batch is known by its due time, or, in flows, by counting: rows end in
the order in which they came, so two batches that are processed at the same time are not told apart exactly.
"""

import math

import numpy as np
from numpy.typing import NDArray

from barograph.engines.sim.world.layout import Floats, WorldLayout
from barograph.model.loads.shapes import InBatches as Shape

_HAIR_S = 1e-6  # due times are sums of floats: tolerance, so that no row counts for the batch before


class BatchProgress:
    """The batches of one topology. rows: of each batch at the sinks. sent_s: when each was sent in full."""

    def __init__(self, every_s: float, within_s: float, count: int, rows: float) -> None:
        self.every_s, self.count, self.rows = every_s, count, rows
        self.sent_s: Floats = np.arange(count, dtype=np.float64) * every_s + within_s
        self.last_s: Floats = np.zeros(count)
        self._total, self._open = np.zeros(count), np.zeros(count)

    def ended(self, due_s: Floats, end_s: Floats) -> None:
        """Rows that reached a sink: when each was due, and when it ended."""
        number = np.minimum(((due_s + _HAIR_S) / self.every_s).astype(np.intp), self.count - 1)
        self._open += np.bincount(number, minlength=self.count)
        np.maximum.at(self.last_s, number, end_s)

    def flowed(self, rows: float, end_s: float) -> None:
        """So many more rows reached a sink by then; those of the earliest batch that is not through come first."""
        for number in range(int(np.count_nonzero(self._through())), self.count):
            mine = min(rows, self.rows - float(self._total[number] + self._open[number]))
            if mine > 0.0:
                self._open[number] += mine
                self.last_s[number] = end_s
                rows -= mine
            if rows <= 0.0:
                break

    def commit(self) -> None:
        self._total += self._open
        self._open[:] = 0.0

    def fail(self) -> None:
        """The rows of the open epoch will be replayed."""
        self._open[:] = 0.0

    def seen(self, number: int) -> float:
        """The share of a batch's rows that have reached a sink."""
        return float(self._total[number] + self._open[number]) / self.rows

    def times_s(self, now_s: float) -> Floats:
        """How long each batch that was sent took; for one that has not ended, how long it has taken so far."""
        found: Floats = np.where(self._through(), self.last_s, now_s) - self.sent_s
        return found[self.sent_s <= now_s]

    def _through(self) -> NDArray[np.bool_]:
        return self._total + self._open >= self.rows * (1.0 - 1e-6)


def batches_of(layout: WorldLayout, until_s: float) -> list[BatchProgress | None]:
    """Those of each topology up to then; None where its load is not in batches, or where it has several sources."""
    found: list[BatchProgress | None] = []
    for t in range(len(layout.topologies)):
        sources = [p for p in layout.operators if p.topology == t and p.work.load is not None]
        shape = sources[0].work.load.shape if len(sources) == 1 and sources[0].work.load is not None else None
        if isinstance(shape, Shape):
            rows = shape.rows * layout.gain[sources[0].index]
            count = min(shape.count, math.ceil(until_s / shape.every_s))
            found.append(BatchProgress(shape.every_s, shape.within_s, count, rows))
        else:
            found.append(None)
    return found
