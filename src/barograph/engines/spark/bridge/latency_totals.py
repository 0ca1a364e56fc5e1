"""Latencies of every row that has left a topology so far: running totals in the buckets of ``engines/latency.py``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.engines.latency import BUCKETS, Histogram
from barograph.engines.spark.bridge.message import Message

CLOCKS = ("due", "read", "record")  # in the plug-in's order


@dataclass(frozen=True, eq=False, slots=True)
class LatencyTotals:
    """Of one topology, each field by clock: rows[0] from due and so on. It is never changed: a later one is new.

    epoch_max_ms: the maximum of the present epoch; max_ms: of all.
    """

    rows: NDArray[np.int64]
    sum_ms: tuple[int, ...] = (0,) * len(CLOCKS)
    epoch_max_ms: tuple[int, ...] = (0,) * len(CLOCKS)
    max_ms: tuple[int, ...] = (0,) * len(CLOCKS)

    def since(self, before: "LatencyTotals", clock: str, ever: bool = False) -> Histogram:
        """Of the rows that have left since an earlier moment. ever: it is long ago, so the maximum of all counts."""
        c = CLOCKS.index(clock)
        max_ms = self.max_ms[c] if ever else self.epoch_max_ms[c]
        return _histogram(self.rows[c] - before.rows[c], self.sum_ms[c] - before.sum_ms[c], max_ms)


NO_LATENCY = LatencyTotals(np.zeros((len(CLOCKS), BUCKETS), dtype=np.int64))


def _histogram(rows: NDArray[np.int64], sum_ms: int, max_ms: int) -> Histogram:
    at = np.flatnonzero(rows)
    if not len(at):
        return Histogram()
    return Histogram(dict(zip(at.tolist(), rows[at].tolist(), strict=True)), sum_ms, max_ms)


def later(
    before: Mapping[int, LatencyTotals], message: Message, remembered: Iterable[int]
) -> Mapping[int, LatencyTotals]:
    """By topology id: with what the message brings, without topologies that the plug-in has forgotten."""
    kept = set(remembered)
    if "latency_topology" not in message:
        return before if before.keys() <= kept else {t: v for t, v in before.items() if t in kept}
    found = {t: v for t, v in before.items() if t in kept}
    of, clock = message.numbers("bucket_topology"), message.numbers("bucket_clock")
    bucket, rows = message.numbers("bucket"), message.numbers("bucket_rows")
    columns = (message.whole(n) for n in ("latency_clock", "latency_sum_ms", "latency_epoch_max_ms", "latency_max_ms"))
    changed: dict[int, list[tuple[int, ...]]] = {}
    for topology, *values in zip(message.whole("latency_topology"), *columns, strict=True):
        changed.setdefault(topology, []).append(tuple(values))
    for topology, clocks in changed.items():
        had = found.get(topology, NO_LATENCY)
        counts, mine = had.rows.copy(), of == topology
        counts[clock[mine], bucket[mine]] = rows[mine]
        sums, largest, ever = list(had.sum_ms), list(had.epoch_max_ms), list(had.max_ms)
        for c, sum_ms, epoch_max_ms, max_ms in clocks:
            sums[c], largest[c], ever[c] = sum_ms, epoch_max_ms, max_ms
        found[topology] = LatencyTotals(counts, tuple(sums), tuple(largest), tuple(ever))
    return found
