"""What the engine remembers of the plug-in's reports: the present state of each topology, and its recent epochs.

The memory is bounded: a topology keeps its last epochs and its last hour of output.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from barograph.engines.spark.bridge.cycle_totals import CycleTotals
from barograph.engines.spark.bridge.output_counts import OutputCounts
from barograph.engines.spark.bridge.reports import EdgeSeen, Executor, LifeReport, OperatorSeen, Seated, TelemetryReport
from barograph.logs import OnceOnly
from barograph.model import BadInput, Edge, Grouping, Instance, Operator, Topology

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
    """Takes in reports and answers questions about them."""

    def __init__(self) -> None:
        self.executors: tuple[Executor, ...] = ()
        self.topologies: dict[str, Topology] = {}
        self.known: dict[str, Topology] = {}
        """Topologies as they were last reported, including those that do not run now."""
        self.epochs: dict[str, OrderedDict[tuple[str, int], EpochSeen]] = {}
        self.output: dict[str, OutputCounts] = {}
        self.totals = CycleTotals()
        self._warnings = OnceOnly(log)
        self.restartable: set[str] = set()
        """Topologies that can be stopped and started again, so that their state can be repartitioned."""

    def take(self, report: TelemetryReport) -> None:
        self.executors = report.executors
        self.totals.add(report)
        for seat in report.seated:
            epoch = self._epoch(seat.topology, seat.run, seat.epoch)
            epoch.orders, epoch.planned_ms = seat.orders, seat.planned_ms
            epoch.seated[_instance(seat.topology, seat.operator, seat.index)] = seat
        for life in report.lives:
            epoch = self._epoch(life.topology, life.run, life.epoch)
            epoch.lives[_instance(life.topology, life.operator, life.index)] = life
        for (topology, centisecond), rows in report.output.items():
            self.output.setdefault(topology, OutputCounts()).add(centisecond, rows)
        names = {o.topology for o in report.operators}
        self.topologies = {}
        for name in in_order_of_submission(names, self.known, report):
            try:
                self.topologies[name] = read_topology(name, report.operators, report.edges, name in self.restartable)
                self._warnings.over(name)
            except BadInput as error:  # the other topologies are not affected
                self._warnings.warn(name, f"the query {name!r} is not steered: {error}")
        self.known.update(self.topologies)

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

    def present(self, topology: str) -> EpochSeen | None:
        """The epoch that was planned last; None if the topology does not run."""
        if topology not in self.topologies:
            return None
        planned = [e for e in self.epochs.get(topology, {}).values() if e.planned_ms > 0]
        return max(planned, key=lambda e: (e.planned_ms, e.epoch)) if planned else None


def in_order_of_submission(names: set[str], known: Iterable[str], report: TelemetryReport) -> list[str]:
    """In the order in which they were first seen; new ones by when Spark planned them, then by name.

    A query that is restarted keeps its place.
    """
    before = [name for name in known if name in names]
    planned_ms: dict[str, int] = {}
    for seat in report.seated:
        planned_ms[seat.topology] = min(seat.planned_ms, planned_ms.get(seat.topology, seat.planned_ms))
    latest = max(planned_ms.values(), default=0)
    return [*before, *sorted(names.difference(before), key=lambda name: (planned_ms.get(name, latest), name))]


@lru_cache(SEATS_KEPT)
def _instance(topology: str, operator: str, index: int) -> Instance:
    """One object for all epochs, because it is the key of most of what is remembered."""
    return Instance(topology, operator, index)


def read_topology(
    name: str, operators: tuple[OperatorSeen, ...], edges: tuple[EdgeSeen, ...], restartable: bool = False
) -> Topology:
    """restartable: it can be stopped, its state repartitioned, and started again."""
    ours = [o for o in operators if o.topology == name]
    stateful = [o.operator for o in ours if o.stateful]

    def fixed_because(seen: OperatorSeen) -> str:
        if not (restartable and seen.repartition):
            return seen.fixed_because
        others = ", ".join(o for o in stateful if o != seen.operator)
        return f"its state could only be repartitioned together with that of {others}" if others else ""

    return Topology(
        name,
        tuple(
            Operator(o.operator, o.parallelism, source=o.source, stateful=o.stateful, fixed_because=fixed_because(o))
            for o in ours
        ),
        tuple(Edge(e.source, e.target, Grouping(e.grouping)) for e in edges if e.topology == name),
    )
