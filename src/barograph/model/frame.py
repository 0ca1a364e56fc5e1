"""The last cycles side by side, operator by operator: what stages with memory read instead of keeping any.

Values only: sums over an operator's instances, as matrices of cycles (newest last) by operators, and the ratios the
papers take of them. Conclusions are left to the stages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from barograph.model.cycle import Cycle
from barograph.model.metrics import COLUMNS
from barograph.model.snapshot import Snapshot
from barograph.model.topology import Topology

Matrix = NDArray[np.float64]
NOTHING = 1e-9  # rows or seconds below this are rounding, not work: no ratio is taken of them
LOOKBACK_CYCLES = 60  # how far "keep the last" looks back for a cycle in which the operator worked


@dataclass(frozen=True, slots=True)
class Link:
    """Parent and child by their positions among the operators of a frame; several edges between the two are one."""

    parent: int
    child: int


@dataclass(frozen=True, eq=False)
class Frame:
    """Cycles by operators. ``keys`` lists topology after topology, each in topological order.

    seen: whether the operator was in that cycle at all; where not, its numbers are 0.
    sent: rows each link carried in each cycle.
    """

    keys: tuple[tuple[str, str], ...]
    topologies: tuple[Topology, ...]
    cycle_s: NDArray[np.float64]
    seen: NDArray[np.bool_]
    values: NDArray[np.float64]
    snapshots: tuple[Snapshot, ...]

    @staticmethod
    def of(history: Sequence[Cycle], now: Snapshot, cycles: int = LOOKBACK_CYCLES) -> "Frame":
        """The present cycle and those before it, ``cycles`` at most."""
        earlier = [c.snapshot for c in history[-(cycles - 1) :]] if cycles > 1 else []
        snapshots = (*earlier, now)
        keys = tuple((t.name, o.name) for t in now.topologies for o in t.order)
        seen = np.zeros((len(snapshots), len(keys)), dtype=np.bool_)
        values = np.zeros((len(COLUMNS), len(snapshots), len(keys)))
        known: tuple[tuple[str, str], ...] | None = None
        take = there = np.zeros(0, dtype=np.int64)
        for cycle, snapshot in enumerate(snapshots):
            found, sums = snapshot.metrics.operator_sums
            if found != known:
                position = {key: p for p, key in enumerate(found)}
                there = np.array([i for i, key in enumerate(keys) if key in position], dtype=np.int64)
                take = np.array([position[key] for key in keys if key in position], dtype=np.int64)
                known = found
            seen[cycle, there] = True
            values[:, cycle, there] = sums[take].T
        return Frame(keys, now.topologies, np.array([s.cycle_s for s in snapshots]), seen, values, snapshots)

    def __len__(self) -> int:
        return len(self.snapshots)

    def column(self, name: str) -> Matrix:
        found: Matrix = self.values[COLUMNS.index(name)]
        return found

    def paced(self, name: str) -> Matrix:
        """The column as if every cycle had been as long as the newest: a move may have made a cycle longer."""
        found: Matrix = self.column(name) * (self.cycle_s[-1] / self.cycle_s)[:, None]
        return found

    @cached_property
    def position(self) -> dict[tuple[str, str], int]:
        return {key: i for i, key in enumerate(self.keys)}

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Parent to child, feedback left out, children in topological order."""
        return tuple(
            Link(self.position[t.name, parent], self.position[t.name, o.name])
            for t in self.topologies
            for o in t.order
            for parent in t.parents(o.name)
        )

    @cached_property
    def sources(self) -> NDArray[np.bool_]:
        """Operators that have no parents, or are marked as a source."""
        marked = [o.source for t in self.topologies for o in t.order]
        fed = {link.child for link in self.links}
        return np.array([m or i not in fed for i, m in enumerate(marked)], dtype=np.bool_)

    @cached_property
    def sent(self) -> Matrix:
        """Rows each link carried: cycles by links.

        Where the engine reports no traffic from an operator, what it emitted goes to its only child, or is split over
        its children by what each received.
        """
        carried = np.zeros((len(self), len(self.links)))
        children: dict[int, list[int]] = {}
        for link in self.links:
            children.setdefault(link.parent, []).append(link.child)
        arrived, emitted = self.column("arrived"), self.column("emitted")
        for cycle, snapshot in enumerate(self.snapshots):
            reported = snapshot.sent_between
            speakers = {(topology, source) for topology, source, _ in reported}
            for i, link in enumerate(self.links):
                topology, parent = self.keys[link.parent]
                if (topology, parent) in speakers:
                    carried[cycle, i] = reported.get((topology, parent, self.keys[link.child][1]), 0.0)
                    continue
                siblings = children[link.parent]
                received = float(arrived[cycle, siblings].sum())
                part = float(arrived[cycle, link.child]) / received if received > 0 else 1 / len(siblings)
                carried[cycle, i] = emitted[cycle, link.parent] * (part if len(siblings) > 1 else 1.0)
        return carried

    def window(self, window_s: float) -> int:
        """How many of the last cycles make up the last ``window_s`` seconds: those whose middle lies in them.

        At least one. Cycles differ in length: a slow change, or a loop that was held up, makes one of them long.
        """
        return max(1, int((self.middle_s > -window_s).sum()))

    @cached_property
    def middle_s(self) -> NDArray[np.float64]:
        """The middle of each cycle, in seconds from now; negative, since all of them are past."""
        ends_s = np.array([s.at_s for s in self.snapshots])
        found: NDArray[np.float64] = ends_s - ends_s[-1] - self.cycle_s / 2
        return found

    def measured_s(self, topology: str, window_s: float) -> float:
        """For how many of the last ``window_s`` seconds there are numbers of the topology.

        A snapshot without metrics, like the one before the first cycle, adds nothing. Whole cycles rarely add up to
        exactly the window; what is short by less than half a cycle counts as the whole of it.
        """
        cycles = self.window(window_s)
        mine = [i for i, key in enumerate(self.keys) if key[0] == topology]
        lengths_s = self.cycle_s[-cycles:][self.seen[-cycles:, mine].any(axis=1)]
        total_s = float(lengths_s.sum())
        rounding_s = float(lengths_s.min()) / 2 if len(lengths_s) else 0.0
        return window_s if total_s >= window_s - rounding_s else total_s

    def until(self, cycles: int) -> "Frame":
        """The frame as it was when only its first ``cycles`` cycles had been seen."""
        earlier = Frame(
            self.keys,
            self.topologies,
            self.cycle_s[:cycles],
            self.seen[:cycles],
            self.values[:, :cycles],
            self.snapshots[:cycles],
        )
        # What is cached of the whole holds for its beginning, too.
        earlier.__dict__.update(
            {name: self.__dict__[name] for name in ("position", "links", "sources") if name in self.__dict__}
        )
        if "sent" in self.__dict__:
            earlier.__dict__["sent"] = self.sent[:cycles]
        return earlier


def mean_of_ratios(top: Matrix, bottom: Matrix, cycles: int) -> NDArray[np.float64]:
    """Mean over the last ``cycles`` of top / bottom, leaving out cycles where bottom is 0; with none left, the last
    ratio there was; NaN where there never was one. This is how the papers average."""
    ratio = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > NOTHING)
    recent = ratio[-cycles:]
    count = (~np.isnan(recent)).sum(axis=0)
    mean = np.nansum(recent, axis=0) / np.maximum(count, 1)
    return np.where(count > 0, mean, _last_number(ratio))


def ratio_of_sums(top: Matrix, bottom: Matrix, cycles: int) -> NDArray[np.float64]:
    """Sum of top / sum of bottom in the last ``cycles``: idle cycles weigh little. Bottom 0: as in mean_of_ratios."""
    below = bottom[-cycles:].sum(axis=0)
    above = np.where(bottom[-cycles:] > NOTHING, top[-cycles:], 0.0).sum(axis=0)
    ratio = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > NOTHING)
    return np.where(below > NOTHING, above / np.where(below > NOTHING, below, 1.0), _last_number(ratio))


def _last_number(ratio: Matrix) -> NDArray[np.float64]:
    known = ~np.isnan(ratio)
    last = len(ratio) - 1 - np.argmax(known[::-1], axis=0)
    found: NDArray[np.float64] = ratio[last, np.arange(ratio.shape[1])]
    return found
