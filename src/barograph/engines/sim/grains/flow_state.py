"""The state of the coarse grain between two steps, and how ends of epochs and failures change it.

Instances are numbered by place here: in the order of ``levels.py``, not in that of the layout.
"""

from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.calibration import Hop
from barograph.engines.sim.grains.due import DueTimes
from barograph.engines.sim.grains.flow_sources import FlowSources
from barograph.engines.sim.grains.levels import levels
from barograph.engines.sim.world.layout import Floats, Ints, WorldLayout


class FlowState:
    """By place: rows waiting, rows read since the start and up to the last commit, and the age of what waits.

    By operator: rows sent to it, done by it, skipped (never made by a live source), and given up by failing moves.
    """

    def __init__(self, layout: WorldLayout, hops: Sequence[Hop], until_s: float, threads: bool) -> None:
        self._hops, self._until_s, self._has_threads = hops, until_s, threads
        operators = len(layout.operators)
        n = len(layout.instances)
        self._loads: dict[str, DueTimes] = {}
        self._sent, self._done = np.zeros(operators), np.zeros(operators)
        self._sent_committed, self._done_committed = np.zeros(operators), np.zeros(operators)
        self._skipped, self._skipped_committed = np.zeros(operators), np.zeros(operators)
        self._given_up = np.zeros(operators)
        self._waiting, self._read, self._committed = np.zeros(n), np.zeros(n), np.zeros(n)
        self._age: Floats = np.zeros((2, n))  # from due, from read
        self._layout = layout
        self._order: Ints = np.arange(n)
        self.arrange(layout, 0.0)

    def arrange(self, layout: WorldLayout, now_s: float) -> None:
        self._carry(layout)
        self._layout = layout
        self._levels, order = levels(layout, self._hops, self._has_threads)
        self._order = order
        self._place = np.empty_like(order)
        self._place[order] = np.arange(order.size)
        self._operator = np.repeat(layout.order, [layout.operators[o].n for o in layout.order])
        self._topology = layout.topology_of[order]
        self._is_source = np.array([o.is_source for o in layout.operators])[self._operator]
        self._reader = np.flatnonzero(self._is_source)
        sources = [layout.operators[o] for o in dict.fromkeys(self._operator[self._reader])]
        self._sources = FlowSources(sources, self._until_s, self._loads)
        self._due_before = self._sources.due(now_s)
        self._waiting, self._read, self._committed = self._waiting[order], self._read[order], self._committed[order]
        if self._age.shape[1] != order.size:
            self._age = np.zeros((2, order.size))

    def _carry(self, layout: WorldLayout) -> None:
        """State in the order of the new layout. A resized operator holds nothing; sources are never resized."""
        for name in ("_waiting", "_read", "_committed"):
            by_place = getattr(self, name)
            old = np.empty_like(by_place)
            old[self._order] = by_place
            fresh = np.zeros(len(layout.instances))
            for before, part in zip(self._layout.operators, layout.operators, strict=True):
                if before.n == part.n:
                    fresh[part.span] = old[before.span]
            setattr(self, name, fresh)

    def quiet_until(self, now_s: float) -> float:
        """Never skips ahead: a step costs the same however few rows flow."""
        return now_s

    def pending(self, now_s: float) -> Floats:  # noqa: ARG002
        return self._waiting[self._place]

    def drained(self, topology: int, now_s: float) -> float | None:
        held = self._waiting[(self._topology == topology) & ~self._is_source]
        return now_s if not held.any() else None

    def _of(self, topology: int) -> list[int]:
        return [p.index for p in self._layout.operators if p.topology == topology]

    def commit(self, topology: int) -> None:
        mine, operators = self._topology == topology, self._of(topology)
        self._committed[mine] = self._read[mine]
        self._sent_committed[operators] = self._sent[operators]
        self._done_committed[operators] = self._done[operators]
        self._skipped_committed[operators] = self._skipped[operators]

    def fail(self, topology: int, now_s: float) -> None:  # noqa: ARG002
        mine, operators = self._topology == topology, self._of(topology)
        self._read[mine] = self._committed[mine]
        self._waiting[mine & ~self._is_source] = 0.0
        self._waiting[self._reader] = self._due_before - self._read[self._reader]
        self._sent[operators] = self._sent_committed[operators]
        self._done[operators] = self._done_committed[operators]
        self._skipped[operators] = self._skipped_committed[operators]

    def abandon(self, topology: int, now_s: float) -> float:
        mine = self._topology == topology
        self._due_before = self._sources.due(now_s)
        self._waiting[self._reader] = self._due_before - self._read[self._reader]
        rows = np.where(mine, self._waiting, 0.0)
        sources = mine & self._is_source
        self._read[sources] += rows[sources]
        self._waiting[mine] = 0.0
        self._given_up += np.bincount(self._operator, weights=rows, minlength=self._given_up.size)
        return float((rows * np.array(self._layout.gain)[self._operator]).sum())

    def read_rows(self) -> Floats:
        read = np.bincount(self._operator, weights=self._read, minlength=self._given_up.size)
        source = np.array([o.is_source for o in self._layout.operators])
        found: Floats = np.where(source, read - self._given_up, 0.0)
        return found

    def unfinished(self, topology: int, now_s: float) -> tuple[Floats, Floats]:
        """A source's backlog in a hundred slices, and what is in flight at the age its operator last saw."""
        gain = np.array(self._layout.gain)[self._operator]
        ages, rows = [np.empty(0)], [np.empty(0)]
        mine = np.flatnonzero(self._topology[self._reader] == topology)
        backlog = self._due_before - self._read[self._reader]
        parts = np.repeat((np.arange(100) + 0.5) / 100, mine.size)
        reader = np.tile(mine, 100)
        due = self._sources.moment(reader, self._read[self._reader[reader]] + parts * backlog[reader])
        ages.append(np.maximum(0.0, now_s - due))
        rows.append(backlog[reader] / 100 * gain[self._reader[reader]])
        flying = np.flatnonzero((self._topology == topology) & ~self._is_source & (self._waiting > 0))
        ages.append(self._age[0, flying])
        rows.append(self._waiting[flying] * gain[flying])
        return np.concatenate(ages), np.concatenate(rows)

    def unaccounted(self, now_s: float) -> float:
        held = np.bincount(self._operator, weights=self._waiting, minlength=self._done.size)
        read = np.bincount(self._operator, weights=self._read, minlength=self._done.size)
        source = np.array([o.is_source for o in self._layout.operators])
        ended = self._done + self._given_up
        missing = np.where(source, np.abs(ended + self._skipped - read), np.abs(self._sent - ended - held))
        scale = np.maximum(1.0, np.maximum(self._sent, self._done))
        late = float(np.abs(self._sources.due(now_s) - self._due_before).sum())
        return float(missing[missing > 1e-6 * scale].sum()) + (late if late > 1e-3 else 0.0)
