"""The engine port on Spark: a Snapshot from what the plug-in reports, a Plan as orders to it.

It decides nothing. A plan is checked against the cluster as it is now and refused whole if anything in it cannot be.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.check import refusals, rescaled
from barograph.engines.latency import Histogram
from barograph.engines.spark.asks import Standings
from barograph.engines.spark.epoch_pace import EpochPace
from barograph.engines.spark.gates import Gates
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
WARM_S = 2.0  # for the targets of a warm cut; what is not read by then is read after it
_CUTS = (MigrationMode.CUT, MigrationMode.WARM_CUT)
# Between two epochs; who holds a topology there goes on much sooner.
HOLD_S = 60.0
PULSE_TIMEOUT_S = 2.0  # the dead answer at once, by a closed connection; this is for the busy


class Keeper(Protocol):
    """Who can stop a topology and start it again."""

    def repartition(self, count: int | None) -> str:
        """Split its state over so many instances, None: leave it; start it again. Empty when done, else why not."""
        ...


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
        self.gates, self.pace = Gates(self._bridge.rest), EpochPace(self._bridge.pace)
        self.standings = Standings()
        self._levels_version = 0
        self.holds_version = 0  # of the snapshot that the last plan was made from, of those that took effect
        self._keepers: dict[str, Keeper] = {}
        self._replacing = False  # workers are being replaced: nobody is to be seated before they are back
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

    def set_levels(self, levels: Mapping[str, int]) -> int:
        """The priorities that hold from now on; the first version of the world that has them."""
        with self._lock:
            if self.standings.set_levels(levels):
                self.refresh()
                self._levels_version = self._version
            return self._levels_version

    def is_still(self, topology: str, timeout_s: float) -> bool:
        """Whether its sources rest and none of its rows is in flight."""
        return self._bridge.is_still(topology, timeout_s)

    def flows(self, topology: str, timeout_s: float) -> bool:
        """Whether all its instances run and its sources read."""
        return self._bridge.flows(topology, timeout_s)

    def refresh(self) -> None:
        """Take in what the plug-in has to tell."""
        with self._lock:
            self.sight.take(self._bridge.observe())
            self._assign_slots(self.sight.executors)
            world = _World(
                tuple(Worker(self._slots[e.id], e.id, e.seats) for e in self.sight.executors),
                tuple(self.standings.of(t) for t in self.sight.topologies.values()),
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
        if plan.mode is MigrationMode.WARM_CUT:
            self._warm(plan)
        with self._lock:
            self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            refused = (*self._not_ours(plan), *refusals(plan, now))
            if refused:
                return Outcome(refused=refused)
            orders, done = self._orders(plan, now)
            turns = self._turns(plan, now, orders)
            done += self._share(plan)
            resting = self.gates.resting
            rests = resting if plan.rests is None else frozenset(plan.rests)
            done += self.gates.rest(resting | rests)
            cut = set(plan.cuts) | (set(orders) if plan.mode in _CUTS else set())
            if not orders and not cut:
                done += self._holds(plan, rests)
                return Outcome(done=tuple(done))
            leaving = self._changed_workers(now, orders) if plan.mode is MigrationMode.WORKER else set()
            ordered_at = self._now()
            ending = self._bridge.order(orders, cut - set(turns))
        # Outside the lock: others may look while this waits.
        problems = {t: keeper.repartition(count) for t, (keeper, count) in turns.items()}
        if leaving:
            problems["worker"] = self._replace(leaving, set(orders))
        if any(problems.values()):
            self.gates.rest(resting)
            return Outcome(refused=tuple(Refusal(f"{plan.mode} of {t}", why) for t, why in problems.items() if why))
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
        done += self._holds(plan, rests)
        self._await_lives(ending)
        return Outcome(done=tuple(done), order_to_commit_s=order_to_commit_s if ending or problems else None)

    def _turns(self, plan: Plan, now: Snapshot, orders: Mapping[str, object]) -> dict[str, tuple[Keeper, int | None]]:
        """Topologies that are stopped and started again: by whom, and over how many instances their state is split."""
        found: dict[str, tuple[Keeper, int | None]] = {}
        if plan.mode is MigrationMode.RESTART_QUERY:
            found = {t: (self._keepers[t], None) for t in orders}
        for r in plan.rescales:
            operator = now.topology(r.topology).operator(r.operator)
            if operator.stateful and operator.parallelism != r.parallelism:
                found[r.topology] = (self._keepers[r.topology], r.parallelism)
        return found

    def _moves(self, topology: str, now: Snapshot, wanted: Placement) -> dict[Instance, Slot]:
        """Who changes its seat, and to which."""
        return {
            i: slot
            for i, slot in wanted.slots.items()
            if i.topology == topology and i in now.placement and now.placement[i] != slot
        }

    def _warm(self, plan: Plan) -> None:
        """Let the targets of moves read what comes to them, before anything stops."""
        with self._lock:
            self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            if refusals(plan, now):
                return
            executors = {slot: executor for executor, slot in self._slots.items()}
            moves = {t.name: self._moves(t.name, now, plan.placement) for t in now.topologies}
        for topology, moved in moves.items():
            if moved:
                self._bridge.warm(topology, [(i.index, executors[s]) for i, s in moved.items()], WARM_S)

    def _changed_workers(self, now: Snapshot, orders: Mapping[str, object]) -> set[str]:
        """Executors whose instances change: those that somebody leaves and those that somebody comes to."""
        found = set()
        for topology in orders:
            for instance, slot in self._moves(topology, now, self._ordered[topology]).items():
                found |= {slot, now.placement[instance]}
        return {executor for executor, slot in self._slots.items() if slot in found}

    def _replace(self, leaving: set[str], topologies: set[str], timeout_s: float = 120.0) -> str:
        """End workers and seat everybody when the new ones are there; empty when all run again, else why not."""
        with self._lock:
            slots = {self._slots[e] for e in leaving}
            runs = {t: e.run for t in topologies if (e := self.sight.present(t)) is not None}
            self._replacing = True
        deadline = self._now() + timeout_s
        try:
            for executor in sorted(leaving):
                self._bridge.replace(executor)
            while not slots <= {s for e, s in self._slots.items() if e not in leaving}:
                if self._now() > deadline:
                    return f"the workers {', '.join(sorted(leaving))} were ended and no others came"
                time.sleep(0.1)
                self.refresh()
            with self._lock:
                orders = {t: (dict(self._parallelism.get(t, {})), self._places(self._ordered[t])) for t in topologies}
                self._bridge.order(orders, ())
        finally:
            self._replacing = False
        while not all(
            (e := self.sight.present(t)) and e.run != runs[t] and len(e.lives) == len(e.seated) for t in runs
        ):
            if self._now() > deadline:
                return "the workers were replaced, but the topology has not started again"
            time.sleep(0.1)
            self.refresh()
        return ""

    def _holds(self, plan: Plan, rests: frozenset[str]) -> list[str]:
        """The plan is in effect. Who need not rest any more reads again only now, on the seats it was given."""
        with self._lock:
            self.holds_version = max(self.holds_version, plan.version or 0)
            return self.gates.rest(rests)

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
            parallelism.update({o.name: o.parallelism for o in scaled if not o.stateful})
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
        if self.shares is None:
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

    # --- for who keeps a topology: between two epochs it can be stopped without repeating a row ---

    def keep(self, topology: str, keeper: Keeper | None) -> None:
        """From now on it can be stopped and started again, by this one; None: no longer."""
        with self._lock:
            if keeper is None:
                self._keepers.pop(topology, None)
            else:
                self._keepers[topology] = keeper
            self.sight.kept = set(self._keepers)

    def hold(self, topology: str) -> bool:
        """End the present epoch and begin no other; False when that did not come to pass in time."""
        ending = self._bridge.order({}, [topology], {topology: HOLD_S})
        return bool(ending) and self._bridge.await_held(topology, min(self.commit_timeout_s, HOLD_S))

    def repartition(self, checkpoint: str, count: int) -> str:
        """Split the state of a query that is stopped; empty when done, else why not."""
        return self._bridge.repartition(checkpoint, count)

    def unfinished_repartition(self, checkpoint: str) -> int:
        return self._bridge.unfinished_repartition(checkpoint)

    def undo_repartition(self, checkpoint: str) -> str:
        return self._bridge.undo_repartition(checkpoint)

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
        if self._replacing:
            return 0
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
        elif plan.shares_pct and self.shares is not None and self.shares.problem:
            found.append(Refusal("CPU shares", self.shares.problem))
        named = {*plan.cuts, *(r.topology for r in plan.rescales), *(i.topology for i in plan.placement)}
        strangers = sorted(t for t in named if t not in self._keepers and t in self.sight.topologies)
        if plan.mode is MigrationMode.RESTART_APP:
            why = (
                "an application cannot start itself again: 'barograph run --migration restart-app' does it from outside"
            )
            found.append(Refusal(f"mode {plan.mode}", why))
        elif plan.mode in (MigrationMode.RESTART_QUERY, MigrationMode.WORKER) and strangers:
            why = f"nobody here can start {', '.join(strangers)} again: start it with barograph.start"
            found.append(Refusal(f"mode {plan.mode}", why))
        return found
