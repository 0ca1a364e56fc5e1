"""Observes a Spark application: makes a Snapshot from what the plug-in reports.

It changes nothing of what runs, with one exception: each epoch has new threads, and ``refresh`` puts them under the CPU
limits that were ordered for their instances.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.config import default
from barograph.engines.latency import Histogram
from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.bridge.cycle_totals import NO_CYCLE_METRICS, CycleMetrics
from barograph.engines.spark.bridge.output_counts import OutputCounts
from barograph.engines.spark.bridge.query_run import QueryRunEnd
from barograph.engines.spark.bridge.reports import Executor
from barograph.engines.spark.bridge.telemetry import EpochSeen, Telemetry
from barograph.engines.spark.limits.instance_limits import InstanceLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import Instance, Node, Placement, Slot, Snapshot, Topology, Worker

# Complete time above which a row is late; Storm's default message timeout.
MESSAGE_TIMEOUT_S: float = default("timeout")
PULSE_TIMEOUT_S = 2.0  # for busy executors; a dead one is known at once by its closed connection
_NO_OPTIONS = QueryOptions()


@dataclass(frozen=True, slots=True)
class _World:
    """The cluster and what runs on it, as one comparable value. If it changes, older plans are stale."""

    workers: tuple[Worker, ...]
    topologies: tuple[Topology, ...]
    placement: Placement


class Observer:
    """Of one Spark application. nodes: the node of each known host; other nodes are named by their host."""

    def __init__(
        self,
        spark: SparkSession,
        nodes: Mapping[str, Node],
        now: Callable[[], float] = time.monotonic,
        timeout_s: float = MESSAGE_TIMEOUT_S,
        limits: InstanceLimits | None = None,
    ) -> None:
        self._bridge = Bridge(spark)
        self._nodes = dict(nodes)
        self._now = now
        self._timeout_s = timeout_s
        self._born = now()
        self._seen_at = self._born
        self._lock = threading.RLock()
        self._slots: dict[str, Slot] = {}
        self._homes: dict[str, str] = {}  # every executor so far -> its node
        self._world = _World((), (), Placement())
        self._version = 0
        self.released: Callable[[], Collection[str]] = tuple  # names of released nodes; set by NodeRelease
        self.application = ""  # of every snapshot; set by the supervisor
        self.limits = limits
        self._options: dict[str, QueryOptions] = {}
        self._levels: dict[str, int] = {}
        self._levels_version = 0
        self.telemetry = Telemetry()
        self.last: Snapshot | None = None
        """The last snapshot that ``observe`` returned, for readers that must not take the metrics of a cycle."""

    def observe(self) -> Snapshot:
        """The cluster now, with metrics since the last call. Resets the counters: only one controller may call it."""
        with self._lock:
            self.refresh()
            at = self._now()
            cycle_s = max(at - self._seen_at, 1e-3)
            self._seen_at = at
            self.last = self._snapshot(at - self._born, cycle_s, self._cycle())
            return self.last

    def glance(self) -> Snapshot:
        """The cluster as it is, with the metrics of the last ``observe``: for a decision between two cycles."""
        with self._lock:
            if self.last is None:
                return self.observe()
            self.refresh()
            found = replace(self._snapshot(self._now() - self._born, self.last.cycle_s), metrics=self.last.metrics)
            if {i for t in found.topologies for i in t.instances()} != set(found.metrics.instances):
                return self.observe()  # rescaled since: the last metrics are of other instances
            last = self.last
            return replace(
                found, traffic=last.traffic, node_metrics=last.node_metrics, topology_metrics=last.topology_metrics
            )

    def declare(self, topology: str, options: QueryOptions) -> None:
        """Set what the author of a topology asks for; may be called before it starts."""
        with self._lock:
            self._options[topology] = options

    def options_of(self, topology: str) -> QueryOptions:
        return self._options.get(topology, _NO_OPTIONS)

    def _with_options(self, topology: Topology) -> Topology:
        """With its options and, if its priority was changed since, its present level."""
        found = self.options_of(topology.name).of(topology)
        return replace(found, level=self._levels.get(topology.name, found.level))

    def set_levels(self, levels: Mapping[str, int]) -> int:
        """Set the priorities. Returns the first version of the snapshot that has them."""
        with self._lock:
            if dict(levels) != self._levels:
                self._levels = dict(levels)
                # Nothing else is refreshed, because sources are paused meanwhile.
                topologies = tuple(self._with_options(t) for t in self.telemetry.topologies.values())
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
            self.telemetry.take(self._bridge.observe())
            self._assign_slots(self.telemetry.executors)
            world = _World(
                tuple(Worker(self._slots[e.id], e.id, e.seats) for e in self.telemetry.executors),
                tuple(self._with_options(t) for t in self.telemetry.topologies.values()),
                self._placement(),
            )
            if world != self._world:
                self._world = world
                self._version += 1
            if self.limits is not None:
                self.limits.hold(self._threads())

    def _threads(self) -> dict[Instance, tuple[str, int]]:
        """Instance -> its node and its thread, of the present epochs."""
        found: dict[Instance, tuple[str, int]] = {}
        for name in self.telemetry.topologies:
            epoch = self.telemetry.present(name)
            for instance, life in ({} if epoch is None else epoch.lives).items():
                slot = self._slots.get(life.executor)
                if slot is not None and life.ended_ms == 0:
                    found[instance] = (slot.node, life.tid)
        return found

    def _assign_slots(self, executors: tuple[Executor, ...]) -> None:
        """An executor keeps its slot; a new executor takes the lowest slot that is free on its node."""
        alive = {e.id for e in executors}
        self._slots = {e: s for e, s in self._slots.items() if e in alive}
        for executor in executors:
            if executor.id not in self._slots:
                node = self._node(executor).name
                taken = {s.index for s in self._slots.values() if s.node == node}
                self._homes[executor.id] = node
                self._slots[executor.id] = Slot(node, next(i for i in range(len(taken) + 1) if i not in taken))

    def _node(self, executor: Executor) -> Node:
        found = self._nodes.get(executor.host)
        if found is None:
            # An unknown host: Spark itself assumes a core for each seat.
            found = self._nodes[executor.host] = Node(executor.host, 100.0 * executor.seats, seats=executor.seats)
        return found

    def _placement(self) -> Placement:
        """Where instances run in the present epochs."""
        slots: dict[Instance, Slot] = {}
        for name in self.telemetry.topologies:
            epoch = self.telemetry.present(name)
            if epoch is not None:
                found = {instance: self._slots.get(epoch.executor_of(instance)) for instance in epoch.seated}
                slots.update({instance: slot for instance, slot in found.items() if slot is not None})
        return Placement(slots)

    def _cycle(self) -> CycleMetrics:
        """Metrics since the last call; it resets the counters."""
        epochs = {name: self.telemetry.present(name) for name in self.telemetry.topologies}
        return self.telemetry.totals.take(
            self._world.topologies,
            {name: e.epoch for name, e in epochs.items() if e is not None},
            {executor: slot.node for executor, slot in self._slots.items()},
            self._timeout_s,
        )

    def _snapshot(self, at_s: float, cycle_s: float, cycle: CycleMetrics = NO_CYCLE_METRICS) -> Snapshot:
        there, released = {w.slot.node for w in self._world.workers}, set(self.released())
        return Snapshot(
            at_s, cycle_s, tuple(n for n in self.nodes if n.name in there), self._world.topologies,
            self._world.workers, self._world.placement, cycle.metrics, cycle.traffic, cycle.nodes, cycle.topologies,
            version=self._version, asleep=tuple(n for n in self.nodes if n.name in released - there),
            application=self.application,
        )  # fmt: skip

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every known node, including dead and released ones."""
        return tuple(sorted(self._nodes.values(), key=lambda n: n.name))

    def epochs(self, topology: str) -> list[EpochSeen]:
        """The epochs that are remembered, oldest first."""
        with self._lock:
            return list(self.telemetry.epochs.get(topology, {}).values())

    def output(self, topology: str) -> dict[int, int]:
        """Rows out by centisecond since 1970, as far as they are remembered."""
        with self._lock:
            return self.telemetry.output.get(topology, OutputCounts()).as_dict()

    def workers(self) -> tuple[Worker, ...]:
        """The workers that are alive now."""
        with self._lock:
            self.refresh()
            return self._world.workers

    def age_s(self, seen: Snapshot) -> float:
        """How long ago a snapshot of this engine was taken."""
        return self._now() - self._born - seen.at_s

    def latency(self, topology: str, clock: str) -> Histogram:
        """Complete times of every row that has left the topology so far; clock: due or read."""
        return self.telemetry.totals.latency(topology, clock)

    def await_end(self, query: StreamingQuery, timeout_s: float) -> QueryRunEnd | None:
        """How this run of the query ended; None if it still runs after the timeout."""
        return self._bridge.await_end(query, timeout_s)

    def living(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Executors that answer, and executors that the driver still counts but that do not answer."""
        return self._bridge.pulse(PULSE_TIMEOUT_S)

    def where(self, executor: str) -> str:
        """An executor and its node for people to read, also if it is gone."""
        node = self._homes.get(executor)
        return f"executor {executor}" + (f" on {node}" if node else "")

    def free_seats(self, topology: str) -> int:
        """Seats of live executors that other topologies leave to this one."""
        with self._lock:
            self.refresh()
            return self._left_seats(topology)

    def _left_seats(self, topology: str) -> int:
        others = (self.telemetry.present(name) for name in self.telemetry.topologies if name != topology)
        return sum(e.seats for e in self.telemetry.executors) - sum(len(e.seated) for e in others if e is not None)
