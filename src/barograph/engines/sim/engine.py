"""The simulated engine: the port of ``engines/port.py`` with a clock of its own.

It decides nothing. Plans are checked by the same code as on Spark, then topologies stop, change and go on as the
calibration says. ``advance`` lets time pass; ``apply`` returns when the plan is in effect, so time passes in it too.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from barograph.engines.check import refusals
from barograph.engines.sim.batches import batches_of
from barograph.engines.sim.bounds import require_bounds, require_rows
from barograph.engines.sim.calibration import Calibration, read_calibration, with_constants
from barograph.engines.sim.changes import Change, after, changes, house, moved, pause_s, warm_up_s
from barograph.engines.sim.cpu import pace
from barograph.engines.sim.desk import Desk
from barograph.engines.sim.flows import FlowGrain
from barograph.engines.sim.grain import Ended, Grain, Tally
from barograph.engines.sim.layout import Floats, Layout
from barograph.engines.sim.ledger import Held, Ledger
from barograph.engines.sim.life import Life, Phase
from barograph.engines.sim.rows import RowGrain
from barograph.engines.sim.scenario import Scenario
from barograph.engines.sim.sight import snapshot, with_metrics_of
from barograph.engines.sim.sync import Heard, heard
from barograph.model import Instance, MigrationMode, Outcome, Placement, Plan, Slot, Snapshot, Topology, Worker

_LEAST_SHARE_PCT = 1.0  # the kernel writes no smaller quota
# The application is started again from outside, and a query by its driver: workers do not have to learn of it.
_HEARD_BY_WORKERS = (MigrationMode.WORKER, MigrationMode.BOUNDARY, MigrationMode.CUT, MigrationMode.WARM_CUT)
_MANY = 20  # topologies; from there on single ones do not get moments of their own
_PATIENCE_S = 600.0  # apply gives up waiting for a topology that never drains


class Simulator:
    """A scenario that runs. Same scenario, same seed, same calls: the same numbers to the last bit."""

    def __init__(
        self, scenario: Scenario, seed: int = 0, calibration: Calibration | None = None, grain: str | None = None
    ) -> None:
        self.scenario = scenario
        self.grain_name = grain or scenario.grain
        require_bounds(scenario, scenario.name)
        require_rows(scenario, self.grain_name, scenario.name)
        self.calibration = with_constants(calibration or read_calibration(), scenario.calibration)
        self.seed = seed
        self.now_s = 0.0
        self.version = 0
        self.started = False
        self.topologies: list[Topology] = [w.topology for w in scenario.workloads]
        self.number = {t.name: i for i, t in enumerate(self.topologies)}
        self.workers = _all_workers(scenario)
        self._lives = 0
        self.lives = [Life(scenario.epoch_s) for _ in self.topologies]
        self.shares_pct: dict[Instance, float] = {}  # guaranteed
        self.limits_pct: dict[Instance, float] = {}  # the most each may use
        self._homes: dict[str, dict[Instance, Slot]] = {t.name: {} for t in self.topologies}
        self._taken: Counter[Slot] = Counter()
        self._whole = True  # everyone placed is on a live worker
        self._warm: set[tuple[str, str, Slot]] = set()
        self._chance = np.random.default_rng([seed, 11])  # where workers are in their cycles
        self._losses = sorted(scenario.losses, key=lambda x: x.at_s)
        self._returns: list[tuple[float, Slot]] = []
        self.layout = self._laid_out(self._first_placement())
        self.batches = batches_of(self.layout, scenario.duration_s)
        self.desk = Desk(self)
        kind = RowGrain if self.grain_name == "rows" else FlowGrain
        self.grain: Grain = kind(
            self.layout, self.calibration, scenario.duration_s, seed, scenario.send_thread_s, self.batches
        )
        self.tally = Tally.empty(self.layout, self.grain.dense_traffic)
        self._booked: list[Floats] | None = None  # the part of the tally's traffic that the ledger has
        self._ended = Ended.empty(len(self.topologies), scenario.timeout_s)
        self.cycle_ended = Ended.empty(len(self.topologies), scenario.timeout_s)
        self.observed_s = 0.0
        self._last: Snapshot | None = None
        self.ledger = Ledger(len(self.topologies), scenario.timeout_s)
        self._reckon()

    # the port

    def observe(self) -> Snapshot:
        self._flush()
        self.grain.deliver(self.tally)
        seen = snapshot(self)
        self._book_tally()
        self.cycle_ended = Ended.empty(len(self.topologies), self.scenario.timeout_s)
        self.observed_s, self._last = self.now_s, seen
        return seen

    def glance(self) -> Snapshot:
        """The world as it is, with the metrics of the last cycle: no cycle is cut short by it."""
        return snapshot(self) if self._last is None else with_metrics_of(self._last, snapshot(self))

    def apply(self, plan: Plan) -> Outcome:
        asks = plan.placement or plan.rescales or plan.shares_pct or plan.limits_pct or plan.cuts
        rests = self.desk.resting if plan.rests is None else frozenset(plan.rests)
        if not asks and rests == self.desk.resting and plan.version in (None, self.version):
            return Outcome()
        refused = refusals(plan, self._present())
        if refused:
            self.ledger.refused += 1
            return Outcome(refused=refused)
        done = [*self._share_out(plan), *self.desk.rest(self.desk.resting | rests)]
        found = changes(plan, self.topologies, self._intended())
        for name, change in found.items():
            done += [f"scale {name}/{o}={n}" for o, n in change.parallelism.items()]
            done += [f"move {i}={s}" for i, s in change.moves.items()]
            done += [] if change else [f"cut {name}"]
        if not found:
            return Outcome(done=(*done, *self.desk.rest(rests)))
        if any(found.values()):
            self.version += 1
            self.ledger.reconfigurations += 1
        ordered_s = self.now_s
        if not self.started:
            self._commit({self.number[name]: change for name, change in found.items()})
            return Outcome(done=(*done, *self.desk.rest(rests)), order_to_commit_s=0.0)
        self._order(plan.mode, found, plan.delay_s)
        if plan.mode is MigrationMode.BOUNDARY:
            return Outcome(done=(*done, *self.desk.rest(rests)))
        waited = {self.number[name] for name in found}
        give_up_s = self.now_s + _PATIENCE_S
        if self.now_s < self.scenario.duration_s:  # a change that is under way when the run ends is left unfinished
            give_up_s = min(give_up_s, self.scenario.duration_s)
        while self.now_s < give_up_s - 1e-9:
            self._happen()
            if not any(self.lives[t].busy for t in waited):
                # a topology that need not rest any more reads again only now, on the seats it was given
                return Outcome(done=(*done, *self.desk.rest(rests)), order_to_commit_s=self.now_s - ordered_s)
            self._turn(give_up_s)
        return Outcome(done=(*done, *self.desk.rest(rests)))

    # time

    def start(self) -> None:
        """From here on changes cost what they cost. What was applied before is what topologies were submitted with."""
        if not self.started:
            self.started = True
            self.ledger.reconfigurations = 0

    def advance(self, seconds: float) -> None:
        """Let time pass; less of it where a topology is held, which needs a plan first."""
        self.start()
        target_s = self.now_s + seconds
        while self.now_s < target_s - 1e-9 and not self.desk.held:
            self._turn(target_s)

    def close(self) -> None:
        """Bring the ledger up to date; the run is over."""
        self._flush()
        self.grain.deliver(self.tally)
        self._book_tally()
        self.ledger.settle(self.now_s, Held())

    def _turn(self, target_s: float) -> None:
        """One step of time, cut short where something happens."""
        self._happen()
        due = [target_s, max(self.now_s + self._step_s(), self.grain.quiet_until(self.now_s))]
        due += [x.at_s for x in self._losses[:1]] + [x[0] for x in self._returns[:1]]
        due += [] if (turn_s := self.desk.triggers.next_s()) is None else [turn_s]
        due += [w for life in self.lives if (w := life.wakes_s()) is not None]
        to_s = min(x for x in due if x > self.now_s + 1e-9)
        rests, of = [t.name in self.desk.resting for t in self.topologies], self.layout.topology_of
        reading = [life.phase is Phase.RUNNING and not r for life, r in zip(self.lives, rests, strict=True)]
        running = [life.phase in (Phase.RUNNING, Phase.DRAINING) for life in self.lives]
        wanted = self.grain.wanted(to_s - self.now_s)
        if not all(reading):  # a source that rests wants no CPU, however much waits there
            idle = np.where(self.layout.is_source, ~np.array(reading)[of], ~np.array(running)[of])
            wanted = np.where(idle, 0.0, wanted)
        loss, slice_s = self.calibration.contention_loss, self.calibration.slice_s
        found = pace(self._limit, wanted, self.layout.node_of, self._capacity, loss, slice_s)
        completed = self.grain.step(self.now_s, to_s, found, reading, running, self.tally)
        self.ledger.passed(self.now_s, to_s, completed, self.lives, rests)
        self.now_s = to_s
        for t, life in enumerate(self.lives):
            if life.phase is Phase.DRAINING:
                self._drained(t, life)

    def _step_s(self) -> float:
        draining = len(self.lives) <= _MANY and any(life.phase is Phase.DRAINING for life in self.lives)
        return self.scenario.step_s / 4 if draining else self.scenario.step_s

    def _drained(self, t: int, life: Life) -> None:
        last_s = self.grain.drained(t, self.now_s)
        if last_s is not None and life.change.level is not None:
            self.desk.hold(t)
        elif last_s is not None:
            until_s = max(self.now_s, self._stands_until_s(t, life.change, max(last_s, life.since_s)))
            life.stop(self._together(until_s) if len(self.lives) > _MANY else until_s)

    def _together(self, until_s: float) -> float:
        """On a large cluster who goes on within the same step does so at its end, so that changes are made at once."""
        return math.ceil(until_s / self.scenario.step_s - 1e-9) * self.scenario.step_s

    def _stands_until_s(self, t: int, change: Change, stop_s: float) -> float:
        """When a topology that stopped at stop_s goes on, once the change is made."""
        return max(stop_s, change.ready_s) + self._pause_s(t, change)

    def _pause_s(self, t: int, change: Change) -> float:
        topology, moves = after(change, self.topologies[t]), []
        if change:
            homes = self._homes[topology.name]
            taken = self._taken - Counter(homes.values())
            moves = moved(homes, house(topology, homes, taken, change, self.workers) or {})
        return pause_s(change, topology, moves, self._warm, self.calibration)

    def _happen(self) -> None:
        """Everything that is due now."""
        now = self.now_s + 1e-9
        while self._losses and self._losses[0].at_s <= now:
            loss = self._losses.pop(0)
            self.lose(loss.node, loss.slot, loss.back_s)
        while self._returns and self._returns[0][0] <= now:
            self._come_back(self._returns.pop(0)[1])
        self.desk.pull_triggers()
        committed: dict[int, Change] = {}
        for t, life in enumerate(self.lives):
            change = life.woken(self.now_s)
            if change is not None:
                committed[t] = change
        if committed:
            self._flush()
            self._commit(committed)

    # changes

    def _order(self, mode: MigrationMode, found: dict[str, Change], delay_s: float) -> None:
        if mode is MigrationMode.RESTART_APP:
            everyone = {t.name: found.get(t.name, Change(mode=mode)) for t in self.topologies}
            found = everyone
        told = self._heard(found) if mode in _HEARD_BY_WORKERS else Heard()
        if mode is MigrationMode.WORKER:
            found = self._with_neighbours(found)
        for name, change in found.items():
            t = self.number[name]
            life = self.lives[t]
            if self._fails_rows(mode):
                life.fail(change, self.now_s + self._pause_s(t, change))
                continue
            if mode is MigrationMode.BOUNDARY and self.scenario.sync is None:
                life.keep_for_boundary(change)
                continue
            warm_s = warm_up_s(change, self.topologies[t], self.calibration) if mode is MigrationMode.WARM_CUT else 0.0
            beside_s = max(warm_s, delay_s) if mode is MigrationMode.WARM_CUT else 0.0
            stands_s = self.now_s + told.first_s + beside_s
            change = replace(change, ready_s=self.now_s + told.last_s + warm_s)
            life.order(change, stands_s + self.calibration.cut_order_s, stands_s)
            if life.phase is Phase.STOPPED:  # between two epochs: the change takes as long as it takes all the same
                life.stop(max(life.until_s, self._stands_until_s(t, life.change, self.now_s)))
            elif life.phase is Phase.HELD:  # it is drained already
                life.stop(self._stands_until_s(t, life.change, self.now_s))

    def _heard(self, found: dict[str, Change]) -> Heard:
        """When the workers that lose or get an instance learn of it; of a new parallelism all have to."""
        slots = {
            s for c in found.values() for i, to in c.moves.items() for s in (to, self.layout.placement.get(i)) if s
        }
        if any(c.parallelism for c in found.values()):
            slots |= set(self.workers)
        return heard(self.scenario.sync, slots, self._chance)

    def _fails_rows(self, mode: MigrationMode) -> bool:
        return self.scenario.moves_fail_rows and mode is MigrationMode.WORKER

    def _with_neighbours(self, found: dict[str, Change]) -> dict[str, Change]:
        """Executors whose instances change are replaced; who else has an instance there stops with them."""
        placement = self.layout.placement
        slots = {s for c in found.values() for i, s in c.moves.items()}
        slots |= {s for c in found.values() for i in c.moves if (s := placement.get(i)) is not None}
        hit = {i.topology for i, s in placement.slots.items() if s in slots}
        for slot in sorted(slots):
            self._renew(slot)
        return {name: found.get(name, Change(mode=MigrationMode.WORKER)) for name in sorted(hit | set(found))}

    def _fail(self, t: int, change: Change, pause: float) -> None:
        """The open epoch is lost and will be replayed; the topology stands still, then the change holds."""
        self._flush()
        self.grain.fail(t, self.now_s)
        self.ledger.failed(t)
        if (batches := self.batches[t]) is not None:
            batches.fail()
        self.lives[t].fail(change, self.now_s + pause)

    def lose(self, node: str, slot: int | None = None, back_s: float | None = None) -> None:
        """A worker, or all of a node, dies. Its instances go where seats are free; back_s: when it is there again."""
        dead = [s for s in self.workers if s.node == node and slot in (None, s.index)]
        for each in dead:
            del self.workers[each]
            self._warm = {w for w in self._warm if w[2] != each}
            if back_s is not None:
                self._returns.append((self.now_s + back_s + self.calibration.executor_start_s, each))
        self._returns.sort()
        self.version += 1
        self._whole = False
        for name in sorted({i.topology for i, s in self.layout.placement.slots.items() if s in dead}):
            t = self.number[name]
            pause = self.calibration.failure_seen_s + self.calibration.query_restart_s + self.calibration.boundary_s
            self._fail(t, self.lives[t].change, pause)

    def _come_back(self, slot: Slot) -> None:
        self._renew(slot)
        self.version += 1
        for t, life in enumerate(self.lives):
            if life.phase is Phase.STALLED:
                life.fail(life.change, self.now_s + self.calibration.query_restart_s)
                self.ledger.stalls[t] += 1

    def _renew(self, slot: Slot) -> None:
        self._lives += 1
        seats = next(n for n in self.scenario.nodes if n.name == slot.node).seats or 1
        self.workers[slot] = Worker(slot, f"executor-{slot.node}-{slot.index}-{self._lives}", seats)
        self.workers = dict(sorted(self.workers.items()))

    def _commit(self, committed: dict[int, Change]) -> None:
        """The epochs of these topologies end, their changes hold, and they go on."""
        changed = False
        for t, change in committed.items():
            if self.started and self._fails_rows(change.mode):
                self.ledger.failed_rows[t] += self.grain.abandon(t, self.now_s)
            self.grain.commit(t)
            self.ledger.committed(t)
            if (mine_batches := self.batches[t]) is not None:
                mine_batches.commit()
            self.lives[t].begin(self.now_s)
            if change.level is not None:  # its trigger turned while it stood still
                self.version += 1
                self.lives[t].hold(self.now_s)
            else:
                self.desk.triggers.resumed(t, self.now_s)
            if not change and self._whole and self._homes[self.topologies[t].name]:
                continue
            before = self.topologies[t]
            topology = after(change, before)
            mine = self._homes[topology.name]
            taken = self._taken - Counter(mine.values())
            homes = house(topology, mine, taken, change, self.workers)
            if homes is None:
                self.lives[t].stall(change)
                continue
            if mine == homes and topology == before:
                continue
            changed = True
            self._taken = taken + Counter(homes.values())
            self._homes[topology.name] = homes
            self.ledger.moves += sum(1 for i, s in homes.items() if i in mine and mine[i] != s) if self.started else 0
            self.topologies[t] = topology
            self._warm |= {(i.topology, i.operator, s) for i, s in homes.items()}
        if changed:
            layout = self._laid_out(self._placement())
            self.grain.deliver(self.tally)
            self._book_traffic()
            carried = self.tally.carried(self.layout, layout, self.grain.dense_traffic)
            self.ledger.cpu_used_s += float(self.tally.cpu_s.sum() - carried.cpu_s.sum())
            self.tally = carried
            self._booked = [rows.copy() for rows in carried.traffic]
            self.layout = layout
            self.grain.arrange(layout, self.now_s)
            self._whole = all(s in self.workers for s in self._taken)
            alive = set(layout.instances)
            self.shares_pct = {i: s for i, s in self.shares_pct.items() if i in alive}
            self.limits_pct = {i: s for i, s in self.limits_pct.items() if i in alive}
            self._reckon()

    # bookkeeping

    def _book_tally(self) -> None:
        """What the tally has goes into the ledger, and a new one begins."""
        self._book_traffic()
        self.ledger.cpu_used_s += float(self.tally.cpu_s.sum())
        self.tally = Tally.empty(self.layout, self.grain.dense_traffic)
        self._booked = None

    def _book_traffic(self) -> None:
        """Rows between instances count by the places the instances had while the rows were sent."""
        rows = self.tally.traffic
        if self._booked is not None:
            rows = [a - b for a, b in zip(rows, self._booked, strict=True)]
        self.ledger.sent(self.layout, rows)

    def _share_out(self, plan: Plan) -> list[str]:
        reserved = any(self.shares_pct.get(i) != s for i, s in plan.shares_pct.items())
        self.shares_pct.update(plan.shares_pct)
        fresh = {i: s for i, s in plan.limits_pct.items() if self.limits_pct.get(i) != s}
        self.limits_pct.update(fresh)
        if fresh or reserved:
            self._reckon()
        return [f"limit {i}={s:g}" for i, s in fresh.items()]

    def _reckon(self) -> None:
        """What follows from placement and shares, so that a step need not work it out."""
        layout = self.layout
        limit = np.array([self.limits_pct.get(i, np.nan) for i in layout.instances]) / 100.0
        share = np.array([self.shares_pct.get(i, np.nan) for i in layout.instances]) / 100.0
        cpu = np.array([n.cpu_pct / 100.0 for n in self.scenario.nodes])
        fence = np.where(layout.node_of >= 0, cpu[layout.node_of], 1.0)
        free = np.minimum(fence, 1.0)
        most = np.minimum(np.where(np.isnan(limit), 1.0, limit), free)
        self._limit: Floats = np.maximum(most if self.scenario.enforce else free, _LEAST_SHARE_PCT / 100.0)
        self._capacity: Floats = cpu
        placed = layout.node_of >= 0
        limited = np.bincount(layout.node_of[placed], weights=most[placed], minlength=len(cpu))
        # without a share of its own, an instance has been given all that it may use
        guaranteed = np.minimum(np.where(np.isnan(share), most, share), free)
        reserved = np.bincount(layout.node_of[placed], weights=guaranteed[placed], minlength=len(cpu))
        held = Held(
            reserved_cores=float(np.minimum(reserved, cpu).sum()),
            limit_cores=float(np.minimum(limited, cpu).sum()),
            memory_mb=self._declared_mb(),
            nodes=int(np.unique(layout.node_of[placed]).size),
            workers=int(np.unique(layout.worker_of[placed]).size),
        )
        self.ledger.settle(self.now_s, held)

    def _declared_mb(self) -> float:
        return sum(o.parallelism * (o.memory_mb or 0.0) for t in self.topologies for o in t.operators)

    def _flush(self) -> None:
        fresh = Ended.empty(len(self.topologies), self.scenario.timeout_s)
        self.grain.flush(fresh)
        self.cycle_ended.merge(fresh)
        self.ledger.open.merge(fresh)

    def _present(self) -> Snapshot:
        """Just what a plan is checked against."""
        alive = {s.node for s in self.workers}
        return Snapshot(
            at_s=self.now_s,
            cycle_s=self.scenario.cycle_s,
            nodes=tuple(n for n in self.scenario.nodes if n.name in alive),
            topologies=tuple(self.topologies),
            workers=tuple(self.workers.values()),
            placement=self.running(),
            version=self.version,
        )

    def running(self) -> Placement:
        """Where instances are, less those whose worker has died and who have no other yet."""
        slots = self.layout.placement.slots
        if self._whole:
            return self.layout.placement
        return Placement({i: s for i, s in slots.items() if s in self.workers})

    def _intended(self) -> Placement:
        """Where everyone is, or will be from the next boundary on."""
        waiting = [moves for life in self.lives if (moves := life.waiting.moves)]
        if not waiting:
            return self.running()
        slots = dict(self.layout.placement.slots)
        for moves in waiting:
            slots.update(moves)
        return Placement({i: s for i, s in slots.items() if s in self.workers})

    def _laid_out(self, placement: Placement) -> Layout:
        before = getattr(self, "layout", None)
        return Layout(self.scenario.workloads, self.topologies, placement, self.scenario.nodes, self.seed, before)

    def _first_placement(self) -> Placement:
        """As Spark's offers spread tasks over executors, until a plan says otherwise."""
        for t, topology in enumerate(self.topologies):
            homes = house(topology, {}, self._taken, Change(), self.workers)
            if homes is None:
                self.lives[t].stall(Change())
                continue
            self._homes[topology.name] = homes
            self._taken.update(homes.values())
            self._warm |= {(i.topology, i.operator, s) for i, s in homes.items()}
        return self._placement()

    def _placement(self) -> Placement:
        return Placement({i: s for homes in self._homes.values() for i, s in homes.items()})


def _all_workers(scenario: Scenario) -> dict[Slot, Worker]:
    slots = sorted(Slot(n.name, i) for n in scenario.nodes for i in range(n.slots))
    seats = {n.name: n.seats or 1 for n in scenario.nodes}
    return {s: Worker(s, f"executor-{s.node}-{s.index}-0", seats[s.node]) for s in slots}
