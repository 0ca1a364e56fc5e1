"""The engine port on Spark: a Snapshot from what the plug-in reports (``Observer``), a Plan as orders to the plug-in.

It decides nothing. What it can never do, such as limits where executors do not enforce them, is left out of a plan. The
rest is checked against the cluster as it is now, and refused as a whole if any part is impossible.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from pyspark.sql import SparkSession

from barograph.engines.check import refusals
from barograph.engines.spark.executors.port import KeptNode
from barograph.engines.spark.observer import MESSAGE_TIMEOUT_S
from barograph.engines.spark.orders.epoch_pace import EpochPace
from barograph.engines.spark.orders.placement_orders import PlacementOrders
from barograph.engines.spark.orders.plan_orders import (
    ChangedOrders,
    change_of,
    change_orders,
    cut_first,
    planned_restarts,
)
from barograph.engines.spark.orders.planned_restarts import Restartable, restart_each, restart_together
from barograph.engines.spark.orders.share_orders import OrderedCpu, ShareOrders, no_limits_because, shortfalls
from barograph.engines.spark.orders.source_gates import SourceGates
from barograph.engines.spark.orders.spark_refusals import enforceable, failed_restarts, impossible, restartable_part
from barograph.engines.spark.query_control import WARM_S, QueryControl
from barograph.engines.spark.tolerated import tolerated
from barograph.model import Instance, MigrationMode, Node, Outcome, Placement, Plan, RefusalCode, Slot, Topology

log = logging.getLogger(__name__)

# What was seen so recently is good enough for upkeep, and for a plan of mere limits: a look costs CPU of the driver.
FRESH_S = 1.5
LEAD_S = 2.0  # the longest the other topologies wait for those that are cut first
_CUTS = (MigrationMode.CUT, MigrationMode.WARM_CUT)


class SparkEngine(QueryControl):
    """Observes one Spark application and applies plans to it."""

    def __init__(
        self,
        spark: SparkSession,
        nodes: Mapping[str, Node],
        now: Callable[[], float] = time.monotonic,
        timeout_s: float = MESSAGE_TIMEOUT_S,
    ) -> None:
        super().__init__(spark, nodes, now, timeout_s)
        self._orders = PlacementOrders(self._bridge, self._telemetry, self._executors, self._left_seats, now)
        self._restartable: dict[str, Restartable] = {}
        self._replacing = False  # workers are being replaced: no instance gets a seat before they are back
        self.gates, self.pace = SourceGates(self._bridge.rest), EpochPace(self._bridge.pace)
        self.shares = ShareOrders(self._bridge.share)
        self.holds_version = 0  # of the snapshot from which the latest plan in effect was made
        self.heeds_triggers = True  # as the last plan that sets it says

    def keep_up(self) -> None:
        """Do what falls due between plans: orders that can be followed again, since an executor was replaced, are sent
        again. The supervisor calls it."""
        with self._lock:
            if self._now() - self._looked_s >= FRESH_S:
                self.refresh()
            if not self._replacing:
                self._orders.returns.forget(self.leaving())  # they will end, and that is no death
                self._orders.restore()

    def held_back(self) -> dict[str, tuple[int, float]]:
        """Nodes that instances avoid since executors die there again and again: deaths in a row, seconds left."""
        with self._lock:
            return self._orders.returns.held_back()

    def free_seats(self, topology: str) -> int:
        """Seats of live executors that other topologies leave to this one; 0 while workers are being replaced."""
        return 0 if self._replacing else super().free_seats(topology)

    def fit(self, topology: str, seats: int | None) -> int:
        """The number of instances of its next run: as before, or fewer if ``seats`` are too few (None: no limit)."""
        with self._lock:
            return self._orders.fit(topology, seats)

    def begin_smaller(self, topology: str, wanted: Mapping[str, int], given: Mapping[str, int]) -> None:
        """Its next run has so many instances of operators that can be scaled, until there are seats for ``wanted``."""
        with self._lock:
            self._orders.begin_smaller(topology, wanted, given)

    def place_first(
        self, topology: Topology, placement: Placement, parallelism: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Order the placement of a topology before it starts, and the parallelism of operators that were rescaled, so
        that its first epoch already has them."""
        with self._lock:
            self.refresh()
            self._orders.begin(topology.name, placement, parallelism)

    def orders(self, topology: str) -> tuple[Placement, dict[str, int]]:
        """The last orders for a topology: its placement, and the parallelism of operators that were rescaled."""
        with self._lock:
            return self._orders.placement(topology), self._orders.counts(topology)

    def apply(self, plan: Plan) -> Outcome:
        ends_epochs = bool(plan.placement or plan.rescales or plan.cuts)
        if plan.mode is MigrationMode.WARM_CUT and ends_epochs:
            ordered_at = self._now()
            if self._warm(plan):
                time.sleep(max(0.0, plan.delay_s - (self._now() - ordered_at)))
        with self._lock:
            if ends_epochs or self._now() - self._looked_s >= FRESH_S:
                self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            unsupervised = self._telemetry.topologies.keys() - self._restartable.keys()
            limited = bool(plan.limits_pct)
            plan, unlimited = enforceable(plan, no_limits_because(self._telemetry.executors))
            plan, left_out = restartable_part(plan, now, unsupervised)
            refused = (*impossible(plan, left_out), *refusals(plan, now))
            if refused:
                return Outcome(refused=tuple(dict.fromkeys((*left_out, *refused))))
            changed, cpu, resting = ChangedOrders(), self.shares.ordered, self.gates.resting
            rests = resting if plan.rests is None else frozenset(plan.rests)
            try:
                change_orders(changed, self._orders, plan, now)
                orders, done = changed.topologies, self.shares.order(plan)
                done += self.gates.rest(resting | rests)
                replaced = changed.slots if plan.mode is MigrationMode.WORKER else ()
                leaving = {executor for executor, slot in self._slots.items() if slot in replaced}
                stopped = orders if leaving or plan.mode is MigrationMode.RESTART_QUERY else ()
                restarts = planned_restarts(plan, now, self._restartable, stopped)
                # A change for which no worker is replaced, such as one instance more without a place, takes a cut.
                at_once = plan.mode in _CUTS or (plan.mode is MigrationMode.WORKER and not leaving)
                cut = set(plan.cuts) | (set(orders) if at_once else set())
                if orders or cut:
                    ordered_at = self._now()
                    cut -= set(restarts)
                    first = cut_first(self._orders, cut, self.gates.paused, now)
                    ending = self._orders.send(orders, first)
                else:
                    done += self._take_effect(plan, rests)
            except Exception:
                self._take_back(changed, cpu, resting)
                raise
            if limited:
                left_out += self.shares.news(unlimited or shortfalls(self._telemetry.executors, self.where))
            if plan.heeds_triggers is not None:
                self.heeds_triggers = plan.heeds_triggers
            if not orders and not plan.cuts:
                return Outcome(done=(*changed.done, *done), left_out=left_out)
        # Without the lock: other threads may observe while this waits.
        if cut - first:
            ending |= self._cut_others(plan, ending, cut - first)
        if leaving:
            problems = restart_together(restarts, "workers", lambda: self._replace(leaving, set(orders)))
        else:
            problems = restart_each(restarts)
        failed = failed_restarts(plan, problems, orders if leaving else ())
        if failed:
            # They go on as they were. The others run by the plan: undoing that would take another cut of each.
            with self._lock:
                changed.take_back(self._orders, [r.topology for r in failed])
        begun = {t: self._bridge.await_epoch_after(t, e, self.commit_timeout_s) for t, e in ending.items()}
        late = [t for t, e in begun.items() if e is None]
        order_to_commit_s = self._now() - ordered_at
        if late:
            what = ", ".join(late)
            waited = f"{self.commit_timeout_s:g} s"
            text = f"the epoch of {what} did not end within {waited}: the plan takes effect when it ends"
            return Outcome(
                (*changed.done, *done, text), failed, None, changed.moves, changed.rescales, left_out=left_out
            )
        done += [
            f"cut {t} after epoch {e}"
            if (begun[t] or 0) > e
            else f"{t} died in epoch {e}; its next query run follows the plan"
            for t, e in ending.items()
        ]
        done += self.gates.rest(resting) if failed else self._take_effect(plan, rests)
        self._await_lives(ending)
        took_s = order_to_commit_s if ending or problems else None
        return Outcome((*changed.done, *done), failed, took_s, changed.moves, changed.rescales, left_out)

    def _take_back(self, changed: ChangedOrders, cpu: OrderedCpu, resting: frozenset[str]) -> None:
        """All goes on as before a plan that failed, else it would be carried out later: first noted, then sent."""
        steps: dict[str, Callable[[], None]] = {
            "orders": lambda: changed.take_all_back(self._orders),
            "CPU shares": lambda: self.shares.take_back(cpu),
            "resting sources": lambda: self.gates.take_back(resting),
        }
        for what, take_back in steps.items():
            with tolerated(log, f"{what} of a plan that failed are not taken back in the plug-in yet", Exception):
                take_back()

    def _cut_others(self, plan: Plan, first: Mapping[str, int], later: set[str]) -> dict[str, int]:
        """Wait until the topologies that were cut first run by the plan, then cut the others."""
        if all(self._bridge.await_epoch_after(t, e, LEAD_S) is not None for t, e in first.items()):
            self.holds_version = max(self.holds_version, plan.version or 0)
            self._await_lives(first, LEAD_S)
        with self._lock:
            return self._orders.send((), later)

    def _warm(self, plan: Plan) -> bool:
        """Let the targets of moves prepare (load code, read state) before anything stops. False if nothing moves."""
        with self._lock:
            self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            plan, _ = enforceable(plan, no_limits_because(self._telemetry.executors))
            if refusals(plan, now):
                return False
            executors = self._executors()
            found = {t.name: change for t in now.topologies if (change := change_of(t, plan, now))}
        moves = {t: [(i.index, executors[c.wanted[i]]) for i in c.moved] for t, c in found.items() if c.moved}
        for topology, moved in moves.items():
            self._bridge.warm(topology, moved, WARM_S)
        return bool(moves)

    def _replace(self, leaving: set[str], topologies: set[str], timeout_s: float = 120.0) -> str:
        """End workers, wait for new ones, and send the planner orders for those. Returns "" when done, else why not."""
        with self._lock:
            slots = {self._slots[e] for e in leaving if e in self._slots}
            self._replacing = True
            self._orders.returns.forget(leaving)
        deadline = self._now() + timeout_s
        try:
            for executor in sorted(leaving):
                self._bridge.replace(executor)
            while not slots <= {s for e, s in self._slots.items() if e not in leaving}:
                if self._now() > deadline:
                    names = ", ".join(sorted(leaving))
                    return f"executors {names} were ended, and no new ones came up within {timeout_s:g} s"
                time.sleep(0.1)
                self.refresh()
            with self._lock:
                self._orders.send(topologies)
            return ""
        finally:
            self._replacing = False

    def _take_effect(self, plan: Plan, rests: frozenset[str]) -> list[str]:
        """The plan is in effect: sources that no longer rest read again only now, in their new seats."""
        with self._lock:
            begun = self.gates.rest(rests)
            self.holds_version = max(self.holds_version, plan.version or 0)
            return begun

    def lift_limits(self) -> list[Instance]:
        """Take away the CPU limits that a controller ordered. Returns the instances that were limited."""
        with self._lock:  # a plan that fails takes limits back to what they were before it
            return self.shares.lift()

    def enforce(self, way: str) -> None:
        """Hold instances to their limits in this way from now on: auto, cgroup, cooperative or off."""
        self._bridge.enforce(way)

    def _executors(self) -> dict[Slot, str]:
        return {slot: executor for executor, slot in self._slots.items()}

    def _await_lives(self, ended: Mapping[str, int], timeout_s: float = 10.0) -> None:
        """Wait until every instance of the new epochs has reported, so that the next observation includes them."""
        deadline = self._now() + timeout_s
        # Refreshing costs the driver CPU that the new epoch needs to start, and no instance reports sooner than this.
        look_s = 0.25 if ended else 0.0
        while self._now() < deadline:
            time.sleep(look_s)
            self.refresh()
            present = [self._telemetry.present(t) for t in ended]
            if all(e is None or e.is_up for e in present):
                return
            look_s = 0.1

    # --- for supervised queries and nodes ---

    def set_restartable(self, topology: str, query: Restartable | None) -> None:
        """From now on the topology can be stopped and started again through ``query``; None: no longer."""
        with self._lock:
            if query is None:
                self._restartable.pop(topology, None)
            else:
                self._restartable[topology] = query
            self._telemetry.restartable = self._restartable.keys()

    def let_go(self, node: str, end: Callable[[Collection[str]], KeptNode | None]) -> KeptNode | None:
        """Let ``end`` end a node's executors if no instance runs, or is ordered to run, on them. It gets their ids, and
        returns None or why not; so does this. No plan can change anything meanwhile."""
        with self._lock:
            self.refresh()
            # A supervised query that is being restarted has no seats now, and gets some in a moment.
            down = sorted(self._restartable.keys() - self._telemetry.topologies.keys())
            if down:
                return KeptNode(RefusalCode.RESTARTING, f"{down[0]} is being started again")
            ordered = [self._orders.placement(name) for name in self._telemetry.topologies]
            for placement in (self._world.placement, *ordered):
                sitting = next((str(i) for i, s in placement.slots.items() if s.node == node), "")
                if sitting:
                    return KeptNode(RefusalCode.NODE_IN_USE, f"{sitting} has its seat there")
            return end([executor for executor, slot in self._slots.items() if slot.node == node])
