"""The engine port on Spark: a Snapshot from what the plug-in reports (``Eyes``), a Plan as orders to it.

It decides nothing. A plan is checked against the cluster as it is now and refused whole if anything in it cannot be.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import SparkSession

from barograph.engines.check import refusals, rescaled
from barograph.engines.spark.epoch_pace import EpochPace
from barograph.engines.spark.eyes import MESSAGE_TIMEOUT_S, Eyes
from barograph.engines.spark.gates import Gates
from barograph.engines.spark.shares import Shares
from barograph.engines.spark.standing import StandingOrders
from barograph.engines.spark.turns import Keeper, Turn, turned, turned_together
from barograph.model import Instance, MigrationMode, Node, Outcome, Placement, Plan, Refusal, Slot, Snapshot, Topology

# An epoch ends when all that was sent is processed; under heavy overload that takes a while.
COMMIT_TIMEOUT_S = 120.0
WARM_S = 2.0  # for the targets of a warm cut; what is not read by then is read after it
# Between two epochs; who holds a topology there goes on much sooner.
HOLD_S = 60.0
LEAD_S = 2.0  # of those who are cut first; the others do not wait longer for them
_CUTS = (MigrationMode.CUT, MigrationMode.WARM_CUT)


class SparkEngine(Eyes):
    """Eyes and hands on one Spark application."""

    def __init__(
        self,
        spark: SparkSession,
        nodes: Mapping[str, Node],
        now: Callable[[], float] = time.monotonic,
        timeout_s: float = MESSAGE_TIMEOUT_S,
        shares: Shares | None = None,
    ) -> None:
        super().__init__(spark, nodes, now, timeout_s, shares)
        self.commit_timeout_s = COMMIT_TIMEOUT_S  # how long apply() waits for an epoch to end
        self._standing = StandingOrders(self._bridge, self.sight, self._executors, self._left_seats)
        self._keepers: dict[str, Keeper] = {}
        self._replacing = False  # workers are being replaced: nobody is to be seated before they are back
        self.gates, self.pace = Gates(self._bridge.rest), EpochPace(self._bridge.pace)
        self.holds_version = 0  # of the snapshot that the last plan was made from, of those that took effect
        self.heeds_triggers = True  # by the last plan that says so

    def refresh(self) -> None:
        with self._lock:
            super().refresh()
            if not self._replacing:
                self._standing.bring_home()

    def free_seats(self, topology: str) -> int:
        """Seats of live executors that other topologies leave to this one; none while workers are being replaced."""
        return 0 if self._replacing else super().free_seats(topology)

    def fit(self, topology: str, seats: int | None) -> int:
        """How many instances its next life has: as many as it had, or where seats are short as many as it can do with.

        None: they are not short."""
        with self._lock:
            return self._standing.fit(topology, seats)

    def place_first(
        self, topology: Topology, placement: Placement, parallelism: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Say where a topology's instances go before it starts, and how many there are of operators that were rescaled,
        so that its first epoch runs so."""
        with self._lock:
            self.refresh()
            self._standing.begin(topology.name, placement, parallelism)

    def orders(self, topology: str) -> tuple[Placement, dict[str, int]]:
        """What was last ordered of a topology: who sits where, and the operators that were rescaled."""
        with self._lock:
            return self._standing.placement(topology), self._standing.counts(topology)

    def apply(self, plan: Plan) -> Outcome:
        ending = {*plan.cuts, *(i.topology for i in plan.placement), *(r.topology for r in plan.rescales)}
        if self.shares is None or not ending or plan.mode is MigrationMode.BOUNDARY:
            return self._apply(plan)
        try:
            self._lift(self.shares, ending)
            return self._apply(plan)
        finally:
            self._lift(self.shares, ())

    def _lift(self, shares: Shares, topologies: Iterable[str]) -> None:
        """While an epoch ends and the next begins nobody is held back; see ``Shares.lift``."""
        with self._lock:
            shares.lift(topologies)
            shares.hold(self._threads())

    def _apply(self, plan: Plan) -> Outcome:
        if plan.mode is MigrationMode.WARM_CUT:
            ordered_at = self._now()
            if self._warm(plan):
                time.sleep(max(0.0, plan.delay_s - (self._now() - ordered_at)))
        with self._lock:
            self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            refused = (*self._not_ours(plan), *refusals(plan, now))
            if refused:
                return Outcome(refused=refused)
            orders, done = self._orders(plan, now)
            done += self._share(plan)
            if plan.heeds_triggers is not None:
                self.heeds_triggers = plan.heeds_triggers
            resting = self.gates.resting
            rests = resting if plan.rests is None else frozenset(plan.rests)
            done += self.gates.rest(resting | rests)
            leaving = self._changed_workers(now, orders) if plan.mode is MigrationMode.WORKER else set()
            turns = self._turns(plan, now, orders if leaving or plan.mode is MigrationMode.RESTART_QUERY else ())
            # A change for which no worker is replaced, such as one instance more without a place, takes a cut.
            at_once = plan.mode in _CUTS or (plan.mode is MigrationMode.WORKER and not leaving)
            cut = set(plan.cuts) | (set(orders) if at_once else set())
            if not orders and not cut:
                done += self._holds(plan, rests)
                return Outcome(done=tuple(done))
            ordered_at = self._now()
            cut -= set(turns)
            first = self._first(cut, now)
            ending = self._standing.send(orders, first)
        # Outside the lock: others may look while this waits.
        if cut - first:
            ending |= self._follow(plan, ending, cut - first)
        if leaving:
            problems = turned_together(turns, "workers", lambda: self._replace(leaving, set(orders)))
        else:
            problems = turned(turns)
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

    def _first(self, cut: set[str], now: Snapshot) -> set[str]:
        """Who is cut before the others: those whose sources wait for this plan, if there is room for them already.

        To start takes all the CPU a driver can get. One after the other each is silent for a shorter time."""
        waiting = cut & self.gates.paused
        if not waiting:
            return cut
        seated = {i: s for i, s in now.placement.slots.items() if i.topology not in waiting}
        for topology in waiting:
            seated |= self._standing.placement(topology).slots
        taken, seats = Counter(seated.values()), {w.slot: w.seats for w in now.workers}
        return waiting if all(n <= seats.get(slot, 0) for slot, n in taken.items()) else cut

    def _follow(self, plan: Plan, first: Mapping[str, int], later: set[str]) -> dict[str, int]:
        """Those who waited have their plan and go on; then the others are cut."""
        if all(self._bridge.await_epoch_after(t, e, LEAD_S) is not None for t, e in first.items()):
            self.holds_version = max(self.holds_version, plan.version or 0)
            self._await_lives(first, LEAD_S)
        with self._lock:
            return self._standing.send((), later)

    def _turns(self, plan: Plan, now: Snapshot, stopped: Iterable[str]) -> dict[str, Turn]:
        """Topologies that are stopped and started again: these, and those whose state is to be split anew."""
        found = {t: Turn(self._keepers[t]) for t in stopped}
        for r in plan.rescales:
            operator = now.topology(r.topology).operator(r.operator)
            if operator.stateful and operator.parallelism != r.parallelism:
                found[r.topology] = Turn(self._keepers[r.topology], r.parallelism)
        return found

    def _moves(self, topology: str, now: Snapshot, wanted: Placement) -> dict[Instance, Slot]:
        """Who changes its seat, and to which."""
        return {
            i: slot
            for i, slot in wanted.slots.items()
            if i.topology == topology and i in now.placement and now.placement[i] != slot
        }

    def _warm(self, plan: Plan) -> bool:
        """Let the targets of moves read what comes to them, before anything stops. False: nothing moves."""
        with self._lock:
            self.refresh()
            now = self._snapshot(self._now() - self._born, 1.0)
            if refusals(plan, now):
                return False
            executors = self._executors()
            moves = {t.name: self._moves(t.name, now, plan.placement) for t in now.topologies}
        for topology, moved in moves.items():
            if moved:
                self._bridge.warm(topology, [(i.index, executors[s]) for i, s in moved.items()], WARM_S)
        return any(moves.values())

    def _changed_workers(self, now: Snapshot, orders: Iterable[str]) -> set[str]:
        """Executors whose instances change: those that an instance leaves, also for good, and those that get one."""
        found: set[Slot | None] = set()
        for topology in orders:
            before, after = now.placement.of_topology(topology), self._standing.placement(topology)
            found |= {slot for move in before.moves_to(after) for slot in (move.source, move.target)}
        return {executor for executor, slot in self._slots.items() if slot in found}

    def _replace(self, leaving: set[str], topologies: set[str], timeout_s: float = 120.0) -> str:
        """End workers and tell the planner of the new ones when they are there; empty when done, else why not."""
        with self._lock:
            slots = {self._slots[e] for e in leaving if e in self._slots}
            self._replacing = True
        deadline = self._now() + timeout_s
        try:
            for executor in sorted(leaving):
                self._bridge.replace(executor)
            while not slots <= {s for e, s in self._slots.items() if e not in leaving}:
                if self._now() > deadline:
                    return f"{', '.join(sorted(leaving))} were ended and no others came within {timeout_s:g} s"
                time.sleep(0.1)
                self.refresh()
            with self._lock:
                self._standing.send(topologies)
            return ""
        finally:
            self._replacing = False

    def _holds(self, plan: Plan, rests: frozenset[str]) -> list[str]:
        """The plan is in effect. Who need not rest any more reads again only now, on the seats it was given."""
        with self._lock:
            self.holds_version = max(self.holds_version, plan.version or 0)
            return self.gates.rest(rests)

    def _orders(self, plan: Plan, now: Snapshot) -> tuple[list[str], list[str]]:
        """Change the orders that stand: of which topologies, and what that does in words."""
        changed: list[str] = []
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
                self._standing.confirm(topology.name, plan.placement)
                continue
            counts = {o.name: o.parallelism for o in scaled if not o.stateful}
            waits = plan.mode is MigrationMode.BOUNDARY and len(counts) == len(scaled)
            if waits and self._standing.is_ordered(topology.name, wanted, counts):
                done.append(f"{topology.name} changes at the end of its epoch, as ordered before")
                continue
            self._standing.change(topology.name, Placement(wanted), counts)
            changed.append(topology.name)
            done += [f"moved {i} from {now.placement[i]} to {wanted[i]}" for i in moved]
            done += [
                f"scaled {topology.name}/{o.name} from {topology.operator(o.name).parallelism} to {o.parallelism}"
                for o in scaled
            ]
        return changed, done

    def _share(self, plan: Plan) -> list[str]:
        """Limits change at once, without a cut; the threads of the next epoch get them as they come."""
        if self.shares is None or self.shares.problem:  # that was said once; everything goes on without limits
            return []
        new = {i: s for i, s in plan.limits_pct.items() if self.shares.ordered_pct.get(i) != s}
        if not new:
            return []
        self.shares.order(new)
        self.shares.hold(self._threads())
        return [f"limit of {i} is {s:g} %" for i, s in new.items()]

    def _executors(self) -> dict[Slot, str]:
        return {slot: executor for executor, slot in self._slots.items()}

    def _await_lives(self, ended: Mapping[str, int], timeout_s: float = 10.0) -> None:
        """Wait until every instance of the new epochs has reported itself, so that the next look sees them."""
        deadline = self._now() + timeout_s
        # Looking costs the driver CPU that the new epoch needs to start, and nobody reports sooner than this.
        look_s = 0.25 if ended else 0.0
        while self._now() < deadline:
            time.sleep(look_s)
            self.refresh()
            present = [self.sight.present(t) for t in ended]
            if all(e is None or e.is_up for e in present):
                return
            look_s = 0.1

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
            ordered = [self._standing.placement(name) for name in self.sight.topologies]
            for placement in (self._world.placement, *ordered):
                sitting = next((str(i) for i, s in placement.slots.items() if s.node == node), "")
                if sitting:
                    return f"{sitting} sits there"
            mine = [executor for executor, slot in self._slots.items() if slot.node == node]
            return "" if not mine or self._bridge.release(mine) else "a task runs there"

    def want_executors(self) -> None:
        """One wherever there is room for it, as at the start."""
        self._bridge.want_all()

    def _not_ours(self, plan: Plan) -> list[Refusal]:
        found = []
        if plan.limits_pct and self.shares is None:
            found.append(Refusal("CPU shares", "this engine was opened without control groups for shares"))
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
