"""The engine port on Spark: a Snapshot from what the plug-in reports, a Plan as orders to it.

It decides nothing. A plan is checked against the cluster as it is now and refused whole if anything in it cannot be.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.check import refusals, rescaled
from barograph.engines.latency import Histogram
from barograph.engines.spark.outflow import Outflow
from barograph.engines.spark.shares import Shares
from barograph.engines.spark.sight import EpochSeen, Sight
from barograph.engines.spark.tally import NO_CYCLE, Cycle
from barograph.engines.spark.wire import Bridge, Executor
from barograph.model import (
    Instance,
    MigrationMode,
    Node,
    Outcome,
    Placement,
    Plan,
    Refusal,
    Slot,
    Snapshot,
    Topology,
    Worker,
)

# Complete time above which a row is late, as the papers' systems had it.
MESSAGE_TIMEOUT_S = 30.0

# An epoch ends when all that was sent is processed; under heavy overload that takes a while.
COMMIT_TIMEOUT_S = 120.0
PULSE_TIMEOUT_S = 2.0  # the dead answer at once, by a closed connection; this is for the busy


@dataclass(frozen=True, slots=True)
class _World:
    """The cluster and what runs on it, as one comparable value; a change of it makes older plans stale."""

    workers: tuple[Worker, ...]
    topologies: tuple[Topology, ...]
    placement: Placement


class SparkEngine:
    """Eyes and hands on one Spark application. ``nodes``: what is known of each host; others are named by host."""

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
        self.commit_timeout_s = COMMIT_TIMEOUT_S  # how long apply() waits for an epoch to end
        self._born = now()
        self._seen_at = self._born
        self._lock = threading.RLock()
        self._slots: dict[str, Slot] = {}
        self._homes: dict[str, str] = {}  # every executor there ever was -> its node
        self._world = _World((), (), Placement())
        self._version = 0
        self._parallelism: dict[str, dict[str, int]] = {}
        self._ordered: dict[str, Placement] = {}
        self.released: Callable[[], Collection[str]] = tuple  # names of nodes that were; who releases sets it
        self.shares = shares
        self.sight = Sight()
        self.last: Snapshot | None = None
        """What was last observed, by whomever: for who only wants to look."""

    # --- eyes ---

    def observe(self) -> Snapshot:
        with self._lock:
            self.refresh()
            at = self._now()
            cycle_s = max(at - self._seen_at, 1e-3)
            self._seen_at = at
            self.last = self._snapshot(at - self._born, cycle_s, self._cycle())
            return self.last

    def refresh(self) -> None:
        """Take in what the plug-in has to tell."""
        with self._lock:
            self.sight.take(self._bridge.observe())
            self._assign_slots(self.sight.executors)
            world = _World(
                tuple(Worker(self._slots[e.id], e.id, e.seats) for e in self.sight.executors),
                tuple(self.sight.topologies.values()),
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

    # --- hands ---

    def place_first(
        self, topology: Topology, placement: Placement, parallelism: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Say where a topology's instances go before it starts, and how many there are of operators that were rescaled,
        so that its first epoch runs so."""
        with self._lock:
            self.refresh()
            self._parallelism[topology.name] = dict(parallelism)
            self._ordered[topology.name] = placement
            self._bridge.order({topology.name: (dict(parallelism), self._places(placement))}, ())

    def orders(self, topology: str) -> tuple[Placement, dict[str, int]]:
        """What was last ordered of a topology: who sits where, and the operators that were rescaled."""
        with self._lock:
            return self._ordered.get(topology, Placement()), dict(self._parallelism.get(topology, {}))

    def apply(self, plan: Plan) -> Outcome:
        with self._lock:
            self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            refused = (*self._not_ours(plan), *refusals(plan, now))
            if refused:
                return Outcome(refused=refused)
            orders, done = self._orders(plan, now)
            done += self._share(plan)
            cut = set(plan.cuts) | (set(orders) if plan.mode is MigrationMode.CUT else set())
            if not orders and not cut:
                return Outcome(done=tuple(done))
            ordered_at = self._now()
            ending = self._bridge.order(orders, cut)
        # Outside the lock: others may look while this waits.
        begun = {t: self._bridge.await_epoch_after(t, e, self.commit_timeout_s) for t, e in ending.items()}
        late = [t for t, e in begun.items() if e is None]
        order_to_commit_s = self._now() - ordered_at
        if late:
            what = ", ".join(late)
            waited = f"{self.commit_timeout_s:g} s"
            text = f"ordered, but the epoch of {what} has not ended within {waited}; it will when it ends"
            return Outcome(done=(*done, text))
        done += [
            f"cut {t} after epoch {e}"
            if (begun[t] or 0) > e
            else f"{t} died in epoch {e}; its next life runs on the plan"
            for t, e in ending.items()
        ]
        self._await_lives(ending)
        return Outcome(done=tuple(done), order_to_commit_s=order_to_commit_s if ending else None)

    def _orders(
        self, plan: Plan, now: Snapshot
    ) -> tuple[dict[str, tuple[dict[str, int], list[tuple[str, int, str]]]], list[str]]:
        """Orders for each topology that changes, and what they do in words."""
        orders = {}
        done: list[str] = []
        for topology in now.topologies:
            after = rescaled(topology, plan)
            wanted = {
                i: slot
                for i in after.instances()
                if (slot := plan.placement.get(i) or now.placement.get(i)) is not None
            }
            moved = [i for i in wanted if i in now.placement and wanted[i] != now.placement[i]]
            scaled = [o for o in after.operators if o.parallelism != topology.operator(o.name).parallelism]
            if not moved and not scaled:
                continue
            parallelism = self._parallelism.setdefault(topology.name, {})
            parallelism.update({o.name: o.parallelism for o in scaled})
            self._ordered[topology.name] = Placement(wanted)
            orders[topology.name] = (dict(parallelism), self._places(Placement(wanted)))
            done += [f"moved {i} from {now.placement[i]} to {wanted[i]}" for i in moved]
            done += [
                f"scaled {topology.name}/{o.name} from {topology.operator(o.name).parallelism} to {o.parallelism}"
                for o in scaled
            ]
        return orders, done

    def _share(self, plan: Plan) -> list[str]:
        """Shares change at once, without a cut; the threads of the next epoch get them as they come."""
        if self.shares is None or self.shares.problem:  # that was said once; everything goes on without limits
            return []
        new = {i: s for i, s in plan.shares_pct.items() if self.shares.ordered_pct.get(i) != s}
        if not new:
            return []
        self.shares.order(new)
        self.shares.hold(self._threads())
        return [f"share of {i} is {s:g} %" for i, s in new.items()]

    def _places(self, placement: Placement) -> list[tuple[str, int, str]]:
        executors = {slot: executor for executor, slot in self._slots.items()}
        return [(i.operator, i.index, executors[s]) for i, s in placement.slots.items() if s in executors]

    def _await_lives(self, ended: Mapping[str, int], timeout_s: float = 10.0) -> None:
        """Wait until every instance of the new epochs has reported itself, so that the next look sees them."""
        deadline = self._now() + timeout_s
        while self._now() < deadline:
            self.refresh()
            present = [self.sight.present(t) for t in ended]
            if all(e is None or len(e.lives) == len(e.seated) for e in present):
                return
            time.sleep(0.1)  # looking costs the driver CPU that the new epoch needs

    def let_go(self, node: str) -> str:
        """End a node's executors if none of them has an instance, or is to have one; else why not, in one sentence.

        Whoever runs on them loses nothing: Spark itself ends none that runs a task. ``want_executors`` comes after."""
        with self._lock:
            self.refresh()
            ordered = [self._ordered.get(name, Placement()) for name in self.sight.topologies]
            for placement in (self._world.placement, *ordered):
                sitting = next((str(i) for i, s in placement.slots.items() if s.node == node), "")
                if sitting:
                    return f"{sitting} sits there"
            mine = [executor for executor, slot in self._slots.items() if slot.node == node]
            return "" if not mine or self._bridge.release(mine) else "a task runs there"

    def want_executors(self) -> None:
        """One wherever there is room for it, as at the start."""
        self._bridge.want_all()

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
            taken = sum(
                len(e.seated)
                for name in self.sight.topologies
                if name != topology and (e := self.sight.present(name)) is not None
            )
            return sum(e.seats for e in self.sight.executors) - taken

    def _not_ours(self, plan: Plan) -> list[Refusal]:
        found = []
        if plan.shares_pct and self.shares is None:
            found.append(Refusal("CPU shares", "this engine was opened without control groups for shares"))
        if plan.mode not in (MigrationMode.CUT, MigrationMode.BOUNDARY):
            found.append(Refusal(f"mode {plan.mode}", "this engine moves by cut or at the boundary"))
        return found
