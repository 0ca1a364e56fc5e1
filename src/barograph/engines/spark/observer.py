"""Observes a Spark application: makes a Snapshot from what the plug-in reports.

The plug-in counts and this reads: observers have a baseline each, take nothing from each other, and change nothing.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.config import default
from barograph.engines.port import CONTROLLER
from barograph.engines.spark.bridge.baselines import Baselines
from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.bridge.message import Message
from barograph.engines.spark.bridge.query_run import QueryRunEnd
from barograph.engines.spark.bridge.reports import Executor
from barograph.engines.spark.bridge.running_totals import NO_CYCLE_METRICS, CycleMetrics, RunningTotals, cycle_metrics
from barograph.engines.spark.executors.port import Executors
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.watched_telemetry import WatchedTelemetry
from barograph.engines.spark.worker_slots import WorkerSlots
from barograph.logs import OnceOnly
from barograph.model import Instance, Node, Placement, Slot, Snapshot, Topology, Worker

log = logging.getLogger(__name__)

# Complete time above which a row is late; Storm's default message timeout.
MESSAGE_TIMEOUT_S: float = default("timeout")
PULSE_TIMEOUT_S = 2.0  # for busy executors; a dead one is known at once by its closed connection
_NO_OPTIONS = QueryOptions()
RATE_S, OLDEST_RATE_S = 2.0, 60.0  # rates for people are over at least and at most about this time
MORE = "more"  # nodes that would come with further executors are more-4, more-5, ...
MEASURED_S = 1.0  # how long a rate is measured if no observer has looked recently


@dataclass(frozen=True, slots=True)
class _World:
    """The cluster and what runs on it, as one comparable value. If it changes, older plans are stale."""

    workers: tuple[Worker, ...]
    topologies: tuple[Topology, ...]
    placement: Placement


class Observer(WatchedTelemetry):
    """Of one Spark application. nodes: the node of each known host; other nodes are named by their host."""

    def __init__(
        self,
        spark: SparkSession,
        nodes: Mapping[str, Node],
        now: Callable[[], float] = time.monotonic,
        timeout_s: float = MESSAGE_TIMEOUT_S,
    ) -> None:
        super().__init__()
        self._bridge = Bridge(spark)
        self._now, self._timeout_s, self._born = now, timeout_s, now()
        self._worker_slots = WorkerSlots(nodes, self._bridge.pods)
        self._world = _World((), (), Placement())
        self._version, self._levels_version = 0, 0
        self.application = ""  # of every snapshot; set by the supervisor
        self.executors: Executors | None = None  # from which more can come; set by the supervisor
        self._options: dict[str, QueryOptions] = {}
        self._warnings = OnceOnly(log)
        self._levels: dict[str, int] = {}
        self._taken_in = -1  # the version of the telemetry that ``_world`` was made of
        self._looked_s = float("-inf")
        self._telemetry.take(message := self._bridge.observe(0, True))
        self._telemetry.begin_here()
        self._baselines = Baselines(self._telemetry.totals(message, 0.0))

    def observe(self, observer: str = CONTROLLER) -> Snapshot:
        """The cluster now, with metrics since this observer's last call; of a new observer, since a moment ago."""
        with self._lock:
            message = self._look(meters=True)
            totals = self._telemetry.totals(message, self._now() - self._born)
            found = self._since(self._baselines.before(observer, totals.at_s), totals)
            self._baselines.looked(observer, totals, found)
            return found

    def glance(self, observer: str = CONTROLLER) -> Snapshot:
        """The cluster as it is, with the metrics of the observer's last cycle: for a decision between two cycles."""
        with self._lock:
            last = self._baselines.last(observer)
            if last is None:
                return self.observe(observer)
            self.refresh()
            found = self._snapshot(self._now() - self._born, last.cycle_s)
            if {i for t in found.topologies for i in t.instances()} != set(last.metrics.instances):
                return self.observe(observer)  # rescaled since: the last metrics are of other instances
            return replace(
                found, metrics=last.metrics, traffic=last.traffic, node_metrics=last.node_metrics,
                topology_metrics=last.topology_metrics,
            )  # fmt: skip

    def recently(self) -> Snapshot:
        """The cluster now, with the metrics of the last seconds: for people to read, at any time.

        Where no observer has looked for a while, it measures for a second."""
        with self._lock:
            totals = self._mark()
            before = self._baselines.recent(totals.at_s, RATE_S)
            if totals.at_s - before.at_s <= OLDEST_RATE_S:
                return self._since(before, totals)
        time.sleep(MEASURED_S)  # without the lock: others may observe meanwhile
        with self._lock:
            return self._since(totals, self._mark())

    def _mark(self) -> RunningTotals:
        totals = self._telemetry.totals(self._look(meters=True), self._now() - self._born)
        self._baselines.mark(totals)
        return totals

    def declare(self, topology: str, options: QueryOptions) -> None:
        """Set what the author of a topology asks for; may be called before it starts."""
        with self._lock:
            self._options[topology] = options
            self._taken_in = -1

    def options_of(self, topology: str) -> QueryOptions:
        return self._options.get(topology, _NO_OPTIONS)

    def _with_options(self, topology: Topology) -> Topology:
        """With its options and, if its priority was changed since, its present level."""
        options = self.options_of(topology.name)
        found = options.of(topology)
        if unknown := options.operators().unknown(topology):
            names = ", ".join(operator.name for operator in topology.operators)
            what = f"options query.* name {', '.join(unknown)}, and {topology.name} has no such operator"
            self._warnings.warn(topology.name, f"{what}: name one of {names}")
        return replace(found, level=self._levels.get(topology.name, found.level))

    def set_levels(self, levels: Mapping[str, int]) -> int:
        """Set the priorities. Returns the first version of the snapshot that has them."""
        with self._lock:
            if dict(levels) != self._levels:
                self._levels = dict(levels)
                # Nothing else is refreshed, because sources are paused meanwhile.
                topologies = tuple(self._with_options(t) for t in self._telemetry.topologies.values())
                if topologies != self._world.topologies:
                    self._world = replace(self._world, topologies=topologies)
                    self._version += 1
                self._levels_version = self._version
            return self._levels_version

    def is_still(self, topology: str, timeout_s: float) -> bool:
        """Whether its sources rest and none of its rows is in flight."""
        return self._bridge.is_still(topology, timeout_s)

    def flows(self, topology: str, timeout_s: float) -> bool:
        """Whether all instances of its sources run and read."""
        return self._bridge.flows(topology, timeout_s)

    def refresh(self) -> None:
        """Take in what the plug-in reports."""
        with self._lock:
            self._look(meters=False)

    def _look(self, meters: bool) -> Message:
        """Take in what is new; most often these are only numbers."""
        message = self._bridge.observe(self._telemetry.cursor, meters)
        self._looked_s = self._now()
        self._telemetry.take(message)
        if self._telemetry.version != self._taken_in:
            self._taken_in = self._telemetry.version
            self._worker_slots.assign(self._telemetry.executors)
            world = _World(
                tuple(Worker(self._slots[e.id], e.id, e.seats) for e in self._telemetry.executors),
                tuple(self._with_options(t) for t in self._telemetry.topologies.values()),
                self._placement(),
            )
            if world != self._world:
                self._world = world
                self._version += 1
        return message

    def _placement(self) -> Placement:
        """Where instances run in the present epochs."""
        slots: dict[Instance, Slot] = {}
        for name in self._telemetry.topologies:
            epoch = self._telemetry.present(name)
            if epoch is not None:
                found = {instance: self._slots.get(epoch.executor_of(instance)) for instance in epoch.seated}
                slots.update({instance: slot for instance, slot in found.items() if slot is not None})
        return Placement(slots)

    def _since(self, before: RunningTotals, now: RunningTotals) -> Snapshot:
        """The cluster, with what was done between two moments; ``now`` is the present one."""
        epochs = {name: self._telemetry.present(name) for name in self._telemetry.topologies}
        cycle = cycle_metrics(
            now,
            before,
            {name: e.epoch for name, e in epochs.items() if e is not None},
            {executor: slot.node for executor, slot in self._slots.items()},
            self._timeout_s,
        )
        return self._snapshot(now.at_s, max(now.at_s - before.at_s, 1e-3), cycle)

    def _snapshot(self, at_s: float, cycle_s: float, cycle: CycleMetrics = NO_CYCLE_METRICS) -> Snapshot:
        there = {w.slot.node for w in self._world.workers}
        return Snapshot(
            at_s, cycle_s, tuple(n for n in self.nodes if n.name in there), self._world.topologies,
            self._world.workers, self._world.placement, cycle.metrics, cycle.traffic, cycle.nodes, cycle.topologies,
            version=self._version, asleep=self._asleep(there),
            application=self.application,
        )  # fmt: skip

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every known node, including dead and released ones."""
        return self._worker_slots.nodes

    def asleep(self) -> tuple[Node, ...]:
        """Nodes that can be fetched: released ones, and those that would come with further executors."""
        with self._lock:
            return self._asleep({w.slot.node for w in self._world.workers})

    def _asleep(self, there: Collection[str]) -> tuple[Node, ...]:
        if self.executors is None:
            return ()
        released = self.executors.released()
        found = [n for n in self.nodes if n.name in released and n.name not in there]
        smallest = min(self._telemetry.executors, key=lambda e: e.cores, default=None)
        if smallest is not None:
            first = 1 + (self.executors.target or 0)  # where they will be is not known yet
            found += [smallest.as_node(f"{MORE}-{first + k}") for k in range(self.executors.more(there))]
        return tuple(found)

    @property
    def _slots(self) -> dict[str, Slot]:
        """Executor -> its slot."""
        return self._worker_slots.of

    @property
    def live_executors(self) -> tuple[Executor, ...]:
        """Live executors, as of the last look."""
        return self._telemetry.executors

    def node_of(self, executor: str) -> str:
        """The node of a live executor; empty if there is none such."""
        slot = self._slots.get(executor)
        return "" if slot is None else slot.node

    def held_since_ms(self) -> dict[Instance, int]:
        """Since when each instance that is held to a limit goes by the present one, in milliseconds since 1970."""
        with self._lock:
            totals = self._telemetry.totals(self._look(meters=True), self._now() - self._born)
        instances = [i for layout in totals.layouts for i in layout.instances]
        return {i: int(ms) for i, ms in zip(instances, totals.columns["held_ms"], strict=True) if ms}

    def workers(self) -> tuple[Worker, ...]:
        """The workers that are alive now."""
        with self._lock:
            self.refresh()
            return self._world.workers

    def await_end(self, query: StreamingQuery, timeout_s: float) -> QueryRunEnd | None:
        """How this run of the query ended; None if it still runs after the timeout."""
        return self._bridge.await_end(query, timeout_s)

    def successor(self, query: StreamingQuery, timeout_s: float) -> str:
        """The run that was started in the place of one that has ended; empty if there is none in time."""
        return self._bridge.successor(query, timeout_s)

    def living(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Executors that answer, and executors that the driver still counts but that do not answer."""
        return self._bridge.pulse(PULSE_TIMEOUT_S)

    def end_silent(self, executor: str, why: str) -> bool:
        """End an executor that does not answer; the cluster starts another in its place. False if there is none."""
        return self._bridge.end_silent(executor, why)

    def where(self, executor: str) -> str:
        """An executor and its node for people to read, also if it is gone."""
        return self._worker_slots.where(executor)

    def free_seats(self, topology: str) -> int:
        """Seats of live executors that other topologies leave to this one."""
        with self._lock:
            self.refresh()
            return self._left_seats(topology)

    def planned(self, topology: str) -> Topology | None:
        """As the planner last saw it, also if its run ended at once; None before it was planned."""
        with self._lock:
            self.refresh()
            return self._telemetry.planned(topology)

    @property
    def seats(self) -> int:
        """Seats of all live executors, as of the last look."""
        return sum(e.seats for e in self._telemetry.executors)

    def _left_seats(self, topology: str) -> int:
        others = (self._telemetry.present(name) for name in self._telemetry.topologies if name != topology)
        return self.seats - sum(len(e.seated) for e in others if e is not None)
