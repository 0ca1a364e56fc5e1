"""What is to be seen of a Spark application: a Snapshot from what the plug-in reports. It changes nothing."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.latency import Histogram
from barograph.engines.spark.asks import Asks
from barograph.engines.spark.outflow import Outflow
from barograph.engines.spark.shares import Shares
from barograph.engines.spark.sight import EpochSeen, Sight
from barograph.engines.spark.tally import NO_CYCLE, Cycle
from barograph.engines.spark.wire import Bridge, Executor
from barograph.model import Instance, Node, Placement, Slot, Snapshot, Topology, Worker

# Complete time above which a row is late, as the papers' systems had it.
MESSAGE_TIMEOUT_S = 30.0
PULSE_TIMEOUT_S = 2.0  # the dead answer at once, by a closed connection; this is for the busy
_NO_ASKS = Asks()


@dataclass(frozen=True, slots=True)
class _World:
    """The cluster and what runs on it, as one comparable value; a change of it makes older plans stale."""

    workers: tuple[Worker, ...]
    topologies: tuple[Topology, ...]
    placement: Placement


class Eyes:
    """On one Spark application. ``nodes``: what is known of each host; others are named by host.

    Whoever looks sees to it that instances stay in their control groups: each epoch has threads of its own.
    """

    def __init__(
        self,
        spark: SparkSession,
        nodes: Mapping[str, Node],
        now: Callable[[], float] = time.monotonic,
        timeout_s: float = MESSAGE_TIMEOUT_S,
        shares: Shares | None = None,
    ) -> None:
        self._bridge = Bridge(spark)
        self._nodes = dict(nodes)
        self._now = now
        self._timeout_s = timeout_s
        self._born = now()
        self._seen_at = self._born
        self._lock = threading.RLock()
        self._slots: dict[str, Slot] = {}
        self._homes: dict[str, str] = {}  # every executor there ever was -> its node
        self._world = _World((), (), Placement())
        self._version = 0
        self.released: Callable[[], Collection[str]] = tuple  # names of nodes that were; who releases sets it
        self.shares = shares
        self._asks: dict[str, Asks] = {}
        self._levels: dict[str, int] = {}
        self._levels_version = 0
        self.sight = Sight()
        self.last: Snapshot | None = None
        """What was last observed, by whomever: for who only wants to look."""

    def observe(self) -> Snapshot:
        with self._lock:
            self.refresh()
            at = self._now()
            cycle_s = max(at - self._seen_at, 1e-3)
            self._seen_at = at
            self.last = self._snapshot(at - self._born, cycle_s, self._cycle())
            return self.last

    def glance(self) -> Snapshot:
        """The world as it is, with the metrics that were last observed: for a decision between two cycles."""
        with self._lock:
            if self.last is None:
                return self.observe()
            self.refresh()
            found = replace(self._snapshot(self._now() - self._born, self.last.cycle_s), metrics=self.last.metrics)
            if {i for t in found.topologies for i in t.instances()} != set(found.metrics.instances):
                return self.observe()  # somebody was scaled since: what was seen says nothing of who is there
            last = self.last
            return replace(
                found, traffic=last.traffic, node_metrics=last.node_metrics, topology_metrics=last.topology_metrics
            )

    def declare(self, topology: str, asks: Asks) -> None:
        """What its author asks for a topology; may come before it starts."""
        with self._lock:
            self._asks[topology] = asks

    def asked(self, topology: str) -> Asks:
        return self._asks.get(topology, _NO_ASKS)

    def _as_asked(self, topology: Topology) -> Topology:
        """With what its author asks and, where its priority was changed since, the level that holds."""
        asked = self.asked(topology.name).of(topology)
        return replace(asked, level=self._levels.get(topology.name, asked.level))

    def set_levels(self, levels: Mapping[str, int]) -> int:
        """The priorities that hold from now on; the first version of the world that has them."""
        with self._lock:
            if dict(levels) != self._levels:
                self._levels = dict(levels)
                # Nothing else is looked at: sources are held back meanwhile.
                topologies = tuple(self._as_asked(t) for t in self.sight.topologies.values())
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
        """Take in what the plug-in has to tell."""
        with self._lock:
            self.sight.take(self._bridge.observe())
            self._assign_slots(self.sight.executors)
            world = _World(
                tuple(Worker(self._slots[e.id], e.id, e.seats) for e in self.sight.executors),
                tuple(self._as_asked(t) for t in self.sight.topologies.values()),
                self._placement(),
            )
            if world != self._world:
                self._world = world
                self._version += 1
            if self.shares is not None:
                self.shares.hold(self._threads())

    def _threads(self) -> dict[Instance, tuple[str, int]]:
        """Instance -> its node and its thread, of the present epochs."""
        found: dict[Instance, tuple[str, int]] = {}
        for name in self.sight.topologies:
            epoch = self.sight.present(name)
            for instance, life in ({} if epoch is None else epoch.lives).items():
                slot = self._slots.get(life.executor)
                if slot is not None and life.ended_ms == 0:
                    found[instance] = (slot.node, life.tid)
        return found

    def _assign_slots(self, executors: tuple[Executor, ...]) -> None:
        """A slot keeps its name; a new executor on a node takes the lowest one that is free there."""
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
            # Nobody told us of this host: a core for each seat is what Spark itself assumes.
            found = self._nodes[executor.host] = Node(executor.host, 100.0 * executor.seats, seats=executor.seats)
        return found

    def _placement(self) -> Placement:
        """Who sits where in the present epochs."""
        slots: dict[Instance, Slot] = {}
        for name in self.sight.topologies:
            epoch = self.sight.present(name)
            if epoch is not None:
                found = {instance: self._slots.get(epoch.executor_of(instance)) for instance in epoch.seated}
                slots.update({instance: slot for instance, slot in found.items() if slot is not None})
        return Placement(slots)

    def _cycle(self) -> Cycle:
        """What was done since the last time somebody asked; whoever asks takes it."""
        epochs = {name: self.sight.present(name) for name in self.sight.topologies}
        return self.sight.tally.take(
            self._world.topologies,
            {name: e.epoch for name, e in epochs.items() if e is not None},
            {executor: slot.node for executor, slot in self._slots.items()},
            self._timeout_s,
        )

    def _snapshot(self, at_s: float, cycle_s: float, cycle: Cycle = NO_CYCLE) -> Snapshot:
        there, released = {w.slot.node for w in self._world.workers}, set(self.released())
        return Snapshot(
            at_s, cycle_s, tuple(n for n in self.nodes if n.name in there), self._world.topologies,
            self._world.workers, self._world.placement, cycle.metrics, cycle.traffic, cycle.nodes, cycle.topologies,
            version=self._version, asleep=tuple(n for n in self.nodes if n.name in released - there),
        )  # fmt: skip

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node that is known, also those that are dead or released."""
        return tuple(sorted(self._nodes.values(), key=lambda n: n.name))

    def epochs(self, topology: str) -> list[EpochSeen]:
        """The epochs remembered, oldest first."""
        with self._lock:
            return list(self.sight.epochs.get(topology, {}).values())

    def output(self, topology: str) -> dict[int, int]:
        """Rows out by 10 ms since 1970, as far as remembered."""
        with self._lock:
            return self.sight.output.get(topology, Outflow()).as_dict()

    def workers(self) -> tuple[Worker, ...]:
        """Who is alive now."""
        with self._lock:
            self.refresh()
            return self._world.workers

    def age_s(self, seen: Snapshot) -> float:
        """How long ago a snapshot of this engine was taken."""
        return self._now() - self._born - seen.at_s

    def latency(self, topology: str, clock: str) -> Histogram:
        """Complete times of every row a topology has put out so far; clock: due or read."""
        return self.sight.tally.latency(topology, clock)

    def await_end(self, query: StreamingQuery, timeout_s: float) -> str:
        """How a query ended: empty while it lives, "stopped", or "died: " and what killed it."""
        return self._bridge.await_end(query, timeout_s)

    def living(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Executors that answer, and those that the driver counts and that do not."""
        return self._bridge.pulse(PULSE_TIMEOUT_S)

    def where(self, executor: str) -> str:
        """An executor in words, also one that is gone."""
        node = self._homes.get(executor)
        return f"executor {executor}" + (f" on {node}" if node else "")

    def free_seats(self, topology: str) -> int:
        """Seats of live executors that other topologies leave to this one."""
        with self._lock:
            self.refresh()
            return self._left_seats(topology)

    def _left_seats(self, topology: str) -> int:
        others = (self.sight.present(name) for name in self.sight.topologies if name != topology)
        return sum(e.seats for e in self.sight.executors) - sum(len(e.seated) for e in others if e is not None)
