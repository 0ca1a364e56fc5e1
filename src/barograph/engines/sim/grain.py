"""What both grains answer to: the engine says how fast each instance may run, a grain says what became of the rows."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from barograph.engines.sim.cpu import Pace
from barograph.engines.sim.latency import Times
from barograph.engines.sim.layout import Floats, Layout


@dataclass(eq=False)
class Tally:
    """What happened since it was last cleared, by instance; traffic by edge. Every grain adds to one."""

    arrived: Floats
    executed: Floats
    emitted: Floats
    cpu_s: Floats
    busy_s: Floats
    blocked_s: Floats
    traffic: list[Floats]

    @staticmethod
    def empty(layout: Layout, dense: bool) -> "Tally":
        """dense: a full matrix for each edge; otherwise one row, what each target instance got."""
        n = len(layout.instances)
        shapes = [(layout.operators[e.source].n if dense else 1, layout.operators[e.target].n) for e in layout.edges]
        a, b, c, d, e, f = np.zeros((6, n))
        return Tally(a, b, c, d, e, f, [np.zeros(s) for s in shapes])

    def carried(self, old: Layout, new: Layout, dense: bool) -> "Tally":
        """The same counts in a new layout. What is no more is dropped, what is new starts at 0."""
        fresh = Tally.empty(new, dense)
        for o, part in enumerate(new.operators):
            before = old.operators[o]
            n = min(part.n, before.n)
            for name in ("arrived", "executed", "emitted", "cpu_s", "busy_s", "blocked_s"):
                getattr(fresh, name)[part.start : part.start + n] = getattr(self, name)[before.start : before.start + n]
        for mine, theirs in zip(self.traffic, fresh.traffic, strict=True):
            rows, columns = min(mine.shape[0], theirs.shape[0]), min(mine.shape[1], theirs.shape[1])
            theirs[:rows, :columns] = mine[:rows, :columns]
        return fresh


@dataclass(eq=False)
class Ended:
    """Rows that reached a sink, by topology: from due time, and from the time they were read."""

    due: list[Times]
    read: list[Times]

    def merge(self, other: "Ended") -> None:
        for mine, theirs in zip((*self.due, *self.read), (*other.due, *other.read), strict=True):
            if theirs.count:
                mine.merge(theirs)

    @staticmethod
    def empty(topologies: int, timeout_s: float) -> "Ended":
        return Ended([Times(timeout_s) for _ in range(topologies)], [Times(timeout_s) for _ in range(topologies)])


class Grain(Protocol):
    """Rows or flows. Times are the simulation's seconds; topologies are numbers in the layout's order."""

    dense_traffic: bool

    def arrange(self, layout: Layout, now_s: float) -> None:
        """Take a new layout. Topologies whose layout changed hold no row between operators at that moment."""
        ...

    def step(
        self,
        from_s: float,
        to_s: float,
        pace: Pace,
        reading: list[bool],
        running: list[bool],
        tally: Tally,
    ) -> Floats:
        """pace: what CPU each instance gets. reading: whether sources read. running: whether anything runs.

        Answers how many rows reached a sink, by topology.
        """
        ...

    def deliver(self, tally: Tally) -> None:
        """Bring the tally's traffic up to date."""
        ...

    def flush(self, ended: Ended) -> None:
        """Hand over the complete times of the rows that ended since the last call."""
        ...

    def wanted(self, dt_s: float) -> Floats:
        """Cores each instance would use over the next dt_s seconds, were it free to."""
        ...

    def quiet_until(self, now_s: float) -> float:
        """Until when no row is anywhere and none falls due; now_s where that is not so, or not known."""
        ...

    def pending(self, now_s: float) -> Floats:
        """Rows before each instance; for a source, its backlog."""
        ...

    def drained(self, topology: int, now_s: float) -> float | None:
        """When the topology's last row in flight ended; None while one is there."""
        ...

    def commit(self, topology: int) -> None:
        """An epoch ends: what was read is done for good."""
        ...

    def fail(self, topology: int, now_s: float) -> None:
        """Everything since the last commit never happened: rows in flight are gone, sources start there again."""
        ...

    def abandon(self, topology: int, now_s: float) -> float:
        """Give up rows in flight and rows that are due and not read: sources go on with what falls due from now on.

        Answers how many rows at the sinks those stand for.
        """
        ...

    def read_rows(self) -> Floats:
        """Rows each source operator has read, each once, by the operator's number; rows given up do not count."""
        ...

    def unfinished(self, topology: int, now_s: float) -> tuple[Floats, Floats]:
        """Ages of rows that are due and not through, and how many rows at the sinks each stands for."""
        ...

    def unaccounted(self, now_s: float) -> float:
        """Rows that were sent to somebody and are neither executed nor waiting there: must be 0."""
        ...
