"""What the engine remembers of the plug-in's answers: the present state of each topology, its recent epochs, and all
that was counted so far.

The memory is bounded: a topology keeps its last epochs and its last hour of output. What cannot be read of one topology
is left out and said once; all others are read.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from barograph.engines.latency import Histogram
from barograph.engines.spark.bridge.latency_totals import NO_LATENCY, LatencyTotals, later
from barograph.engines.spark.bridge.layout import TopologyLayout, instance_of, read_layouts
from barograph.engines.spark.bridge.message import Message, Whole
from barograph.engines.spark.bridge.output_counts import OutputCounts
from barograph.engines.spark.bridge.reports import Executor, LifeReport, Seated, read_epochs, read_executors, read_lives
from barograph.engines.spark.bridge.running_totals import RunningTotals, read_totals
from barograph.model import BadInput, Instance, Topology

log = logging.getLogger(__name__)

EPOCHS_KEPT = 300
# A topology with many instances keeps fewer epochs, so that the driver does not grow for hours.
SEATS_KEPT = 12_000
FEWEST_EPOCHS_KEPT = 4


@dataclass(slots=True)
class EpochSeen:
    """One epoch of one topology: when it was planned, by which orders, and where each instance was sent and ran.

    run: Spark's id of the query run. orders: the number of the orders it was planned by."""

    run: str
    epoch: int
    orders: int
    planned_ms: int
    seated: dict[Instance, Seated] = field(default_factory=dict)
    lives: dict[Instance, LifeReport] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """Whether every instance has reported that it runs."""
        return 0 < len(self.seated) <= len(self.lives)

    def executor_of(self, instance: Instance) -> str:
        """The executor it runs on; before its first report, the executor it was sent to."""
        life = self.lives.get(instance)
        return life.executor if life is not None else self.seated[instance].executor


class Telemetry:
    """Takes in answers and answers questions about them. version: rises when something but numbers has changed."""

    def __init__(self) -> None:
        self.cursor = 0
        self.version = 0
        self.executors: tuple[Executor, ...] = ()
        self.topologies: dict[str, Topology] = {}
        self.known: dict[str, Topology] = {}
        """Topologies as they were last reported, including those that do not run now."""
        self.epochs: dict[str, OrderedDict[tuple[str, int], EpochSeen]] = {}
        self.output: dict[str, OutputCounts] = {}
        self._left_out: set[str] = set()  # topologies of which something cannot be read
        self._present: dict[str, EpochSeen] = {}
        self._first_planned_ms: dict[str, int] = {}
        self._restartable: frozenset[str] = frozenset()
        self._layouts: dict[int, TopologyLayout] = {}
        self._listed: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # ids of topologies, and whether each runs
        self._read: tuple[object, Whole] = ((), np.zeros(0, dtype=np.int64))
        self._latency: Mapping[int, LatencyTotals] = {}
        self._latency_before: Mapping[int, LatencyTotals] = {}

    @property
    def restartable(self) -> frozenset[str]:
        """Topologies that can be stopped and started again, so that their state can be repartitioned."""
        return self._restartable

    @restartable.setter
    def restartable(self, names: Iterable[str]) -> None:
        self._restartable = frozenset(names)
        self._list_topologies()

    def take(self, message: Message) -> None:
        """What is newer than ``cursor``."""
        changed = False
        if "executor_id" in message:
            self.executors, changed = read_executors(message), True
        for epoch, seats in read_epochs(message):
            with self._apart(epoch.topology):
                self._planned(epoch.topology, epoch.run, epoch.epoch, epoch.orders, epoch.planned_ms, seats)
            changed = True
        for life in read_lives(message):
            with self._apart(life.topology):
                instance = instance_of(life.topology, life.operator, life.index)
                self._epoch(life.topology, life.run, life.epoch).lives[instance] = life
            changed = True
        if self._take_layouts(message):
            self._list_topologies()
            changed = True
        self.version += changed
        self._take_output(message)
        self._latency = later(self._latency, message, self._listed[0])
        self._take_read(message)
        self.cursor = message.number("cursor")

    def begin_here(self) -> None:
        """Forget what was before: epochs that have ended, rows that have left. Another engine may have been there."""
        for name, epochs in self.epochs.items():
            present = self.present(name)
            self.epochs[name] = OrderedDict((key, e) for key, e in epochs.items() if e is present)
        self.output.clear()
        self._latency_before = self._latency

    def totals(self, message: Message, at_s: float) -> RunningTotals:
        """All that was counted so far, of a message with meters that was taken in."""
        return read_totals(message, at_s, self.layouts, (e.id for e in self.executors), self._latency)

    @property
    def layouts(self) -> tuple[TopologyLayout, ...]:
        """In the order of the plug-in's numbers."""
        return tuple(self._layouts[number] for number in self._listed[0])

    def present(self, topology: str) -> EpochSeen | None:
        """The epoch that was planned last; None if the topology does not run."""
        return self._present.get(topology) if topology in self.topologies else None

    def latency(self, topology: str, clock: str) -> Histogram:
        """Of every row that has left the topology since ``begin_here``. clock: due, read or record."""
        number = next((layout.id for layout in self._layouts.values() if layout.name == topology), -1)
        return self._latency.get(number, NO_LATENCY).since(
            self._latency_before.get(number, NO_LATENCY), clock, ever=True
        )

    def _planned(
        self, topology: str, run: str, number: int, orders: int, planned_ms: int, seats: Iterable[Seated]
    ) -> None:
        self._present.pop(topology, None)  # an epoch that cannot be read has ended the one before it all the same
        seated = {instance_of(topology, s.operator, s.index): s for s in seats}
        epoch = self._epoch(topology, run, number)
        epoch.orders, epoch.planned_ms, epoch.seated = orders, planned_ms, seated
        self._first_planned_ms.setdefault(topology, planned_ms)
        self._present[topology] = epoch  # they come in their order, which the time of day may not tell

    @contextmanager
    def _apart(self, topology: str) -> Iterator[None]:
        """What cannot be read of this topology does not affect the others. It is said once, not at each look."""
        try:
            yield
        except BadInput as error:
            if topology not in self._left_out:
                self._left_out.add(topology)
                log.warning("the query %r is not steered: %s", topology, error)

    def _epoch(self, topology: str, run: str, number: int) -> EpochSeen:
        epochs = self.epochs.setdefault(topology, OrderedDict())
        found = epochs.get((run, number))
        if found is None:
            seats = max((len(e.seated) for e in epochs.values()), default=0)
            kept = max(FEWEST_EPOCHS_KEPT, min(EPOCHS_KEPT, SEATS_KEPT // max(1, seats)))
            found = epochs[(run, number)] = EpochSeen(run, number, 0, 0)
            while len(epochs) > kept:
                epochs.popitem(last=False)
        return found

    def _take_layouts(self, message: Message) -> bool:
        """Returns whether a topology, or whether it runs, has changed."""
        fresh = read_layouts(message)
        listed = (tuple(message.whole("topology")), tuple(message.whole("present")))
        self._layouts |= {layout.id: layout for layout in fresh}
        if not fresh and listed == self._listed:
            return False
        # A topology whose reports came before its first epoch was planned has no instances yet.
        names = {number: TopologyLayout(number, "", (), (), np.zeros(0, dtype=np.int64)) for number in listed[0]}
        self._layouts = {number: self._layouts.get(number, nothing) for number, nothing in names.items()}
        self._listed = listed
        return True

    def _list_topologies(self) -> None:
        running = {
            self._layouts[number].name: self._layouts[number]
            for number, runs in zip(*self._listed, strict=True)
            if runs and self._layouts[number].operators
        }
        self.topologies = {}
        for name in in_order_of_submission(running.keys(), self.known, self._first_planned_ms):
            with self._apart(name):
                self.topologies[name] = running[name].topology(name in self._restartable)
                self._left_out.discard(name)
        self.known.update(self.topologies)
        self.version += 1

    def planned(self, name: str) -> Topology | None:
        """As it was last planned, also if that run ended at once."""
        found = [layout for layout in self._layouts.values() if layout.name == name and layout.operators]
        return found[-1].topology(name in self._restartable) if found else None

    def _take_output(self, message: Message) -> None:
        if "output_topology" not in message:
            return
        of, at, rows = (message.numbers(f"output_{name}") for name in ("topology", "centisecond", "rows"))
        for number, layout in self._layouts.items():
            mine = of == number
            if mine.any():
                self.output.setdefault(layout.name, OutputCounts()).put(at[mine], rows[mine])

    def _take_read(self, message: Message) -> None:
        """Rows that sources have read in the present epoch; of earlier epochs lives say it."""
        layouts, read = self.layouts, message.numbers("read")
        of = (layouts, tuple(id(self._present.get(layout.name)) for layout in layouts))
        before = self._read[1] if self._read[0] == of else np.full_like(read, -1)
        start = 0
        for layout in layouts:
            end = start + len(layout.ids)
            lives = None if (present := self._present.get(layout.name)) is None else present.lives
            with self._apart(layout.name):
                for at in np.flatnonzero(read[start:end] != before[start:end]).tolist():
                    life = None if lives is None else lives.get(layout.instances[at])
                    if life is not None:
                        life.rows_read = max(life.rows_read, int(read[start + at]))
            start = end
        self._read = (of, read)


def in_order_of_submission(
    names: Iterable[str], known: Iterable[str], first_planned_ms: Mapping[str, int]
) -> list[str]:
    """In the order in which they were first seen; new ones by when Spark planned them, then by name.

    A query that is restarted keeps its place.
    """
    running = set(names)
    before = [name for name in known if name in running]
    latest = max(first_planned_ms.values(), default=0)
    return [*before, *sorted(running.difference(before), key=lambda n: (first_planned_ms.get(n, latest), n))]
