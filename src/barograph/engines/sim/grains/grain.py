"""The interface of both grains: the engine says how fast each instance may run, a grain computes the rows."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from barograph.engines.sim.grains.complete_times import CompleteTimes
from barograph.engines.sim.world.cpu import CpuPace
from barograph.engines.sim.world.layout import Floats, WorldLayout

_BY_INSTANCE = ("arrived", "executed", "emitted", "cpu_s", "busy_s", "blocked_s")


@dataclass(eq=False)
class CycleCounts:
    """What happened since it was last cleared, by instance; traffic by edge. Every grain adds to one."""

    arrived: Floats
    executed: Floats
    emitted: Floats
    cpu_s: Floats
    busy_s: Floats
    blocked_s: Floats
    traffic: list[Floats]

    @staticmethod
    def empty(layout: WorldLayout, dense: bool) -> "CycleCounts":
        """dense: a full matrix for each edge; otherwise one row, what each target instance got."""
        n = len(layout.instances)
        shapes = [(layout.operators[e.source].n if dense else 1, layout.operators[e.target].n) for e in layout.edges]
        a, b, c, d, e, f = np.zeros((6, n))
        return CycleCounts(a, b, c, d, e, f, [np.zeros(s) for s in shapes])

    def plus(self, other: "CycleCounts", sign: float = 1.0) -> "CycleCounts":
        """The sum of two counts of one layout; the difference with sign -1, where what is below 0 is rounding."""
        values = {n: np.maximum(0.0, getattr(self, n) + sign * getattr(other, n)) for n in _BY_INSTANCE}
        traffic = [np.maximum(0.0, a + sign * b) for a, b in zip(self.traffic, other.traffic, strict=True)]
        return CycleCounts(**values, traffic=traffic)

    def carried(self, old: WorldLayout, new: WorldLayout, dense: bool) -> "CycleCounts":
        """The same counts in a new layout. Counts of removed instances are dropped, those of new ones start at 0."""
        fresh = CycleCounts.empty(new, dense)
        for o, part in enumerate(new.operators):
            before = old.operators[o]
            n = min(part.n, before.n)
            for name in _BY_INSTANCE:
                getattr(fresh, name)[part.start : part.start + n] = getattr(self, name)[before.start : before.start + n]
        for mine, theirs in zip(self.traffic, fresh.traffic, strict=True):
            rows, columns = min(mine.shape[0], theirs.shape[0]), min(mine.shape[1], theirs.shape[1])
            theirs[:rows, :columns] = mine[:rows, :columns]
        return fresh


@dataclass(eq=False)
class Ended:
    """Rows that reached a sink, by topology: from due time, and from the time they were read."""

    due: list[CompleteTimes]
    read: list[CompleteTimes]

    def merge(self, other: "Ended") -> None:
        for mine, theirs in zip((*self.due, *self.read), (*other.due, *other.read), strict=True):
            if theirs.count:
                mine.merge(theirs)

    def less(self, other: "Ended") -> "Ended":
        """Without what was there at an earlier moment."""
        due = [a.less(b) for a, b in zip(self.due, other.due, strict=True)]
        return Ended(due, [a.less(b) for a, b in zip(self.read, other.read, strict=True)])

    @staticmethod
    def empty(topologies: int, timeout_s: float) -> "Ended":
        due, read = ([CompleteTimes(timeout_s) for _ in range(topologies)] for _ in range(2))
        return Ended(due, read)


class Grain(Protocol):
    """Rows or flows. Times are seconds of the simulation; topologies are numbers in the layout's order."""

    dense_traffic: bool

    def arrange(self, layout: WorldLayout, now_s: float) -> None:
        """Take a new layout. Topologies whose layout changed hold no row between operators at that moment."""
        ...

    def step(
        self,
        from_s: float,
        to_s: float,
        pace: CpuPace,
        reading: list[bool],
        running: list[bool],
        counts: CycleCounts,
    ) -> Floats:
        """pace: what CPU each instance gets. reading: whether sources read. running: whether anything runs.

        Returns how many rows reached a sink, by topology.
        """
        ...

    def deliver(self, counts: CycleCounts) -> None:
        """Bring the traffic of the counts up to date."""
        ...

    def flush(self, ended: Ended) -> None:
        """Hand over the complete times of the rows that ended since the last call."""
        ...

    def wanted(self, dt_s: float) -> Floats:
        """Cores each instance would use over the next dt_s seconds without any limit."""
        ...

    def quiet_until(self, now_s: float) -> float:
        """Until when there is no row and none falls due; now_s where there is one, or where it is unknown."""
        ...

    def pending(self, now_s: float) -> Floats:
        """Rows before each instance; for a source, its backlog."""
        ...

    def drained(self, topology: int, now_s: float) -> float | None:
        """When the topology's last row in flight ended; None while one is there."""
        ...

    def commit(self, topology: int) -> None:
        """An epoch ends: rows read so far are never replayed."""
        ...

    def fail(self, topology: int, now_s: float) -> None:
        """Go back to the last commit: rows in flight are lost, and sources read again from there."""
        ...

    def abandon(self, topology: int, now_s: float) -> float:
        """Give up rows in flight and rows that are due but not read: sources continue with rows due from now on.

        Returns how many rows at the sinks those stand for.
        """
        ...

    def read_rows(self) -> Floats:
        """Rows each source operator has read, each once, by the operator's number; rows given up do not count."""
        ...

    def unfinished(self, topology: int, now_s: float) -> tuple[Floats, Floats]:
        """Ages of rows that are due and have not ended, and how many rows at the sinks each stands for."""
        ...

    def unaccounted(self, now_s: float) -> float:
        """Rows that were sent to an instance and are neither executed nor waiting there: must be 0."""
        ...
