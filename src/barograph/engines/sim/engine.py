"""The simulated engine: the port of ``engines/port.py`` with a clock of its own.

It decides nothing. Plans are checked by the same code as on Spark; then topologies stop, change and go on with the
times of the calibration. ``advance`` lets time pass. ``apply`` returns when the plan is in effect, so time passes in
it too.
"""

from dataclasses import replace

import numpy as np

from barograph.engines.check import refusals
from barograph.engines.port import CONTROLLER
from barograph.engines.sim.accounts import Accounts
from barograph.engines.sim.calibration import Calibration, read_calibration, with_constants
from barograph.engines.sim.grains.batches import batches_of
from barograph.engines.sim.grains.flows import FlowGrain
from barograph.engines.sim.grains.grain import Grain
from barograph.engines.sim.grains.rows import RowGrain
from barograph.engines.sim.observe import present, snapshot, with_metrics_of
from barograph.engines.sim.other_observers import OtherObservers
from barograph.engines.sim.scenario.bounds import require_bounds, require_rows
from barograph.engines.sim.scenario.definition import Scenario
from barograph.engines.sim.totals import ResourcesInUse
from barograph.engines.sim.transitions import MANY_TOPOLOGIES, Transitions
from barograph.engines.sim.world.changes import TopologyChange, changes
from barograph.engines.sim.world.cpu import pace
from barograph.engines.sim.world.granted_cpu import GrantedCpu
from barograph.engines.sim.world.layout import WorldLayout
from barograph.engines.sim.world.priorities import SimulatedPriorities
from barograph.engines.sim.world.seats import Seats
from barograph.engines.sim.world.topology_state import TopologyPhase, TopologyState
from barograph.model import MigrationMode, Outcome, Placement, Plan, Slot, Snapshot, Topology, Worker

_GIVE_UP_S = 600.0  # apply waits no longer than this, in case a topology never drains


class Simulator:
    """A scenario that runs. The same scenario, seed and calls give the same numbers to the last bit."""

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
        self.states = [TopologyState(scenario.epoch_s) for _ in self.topologies]
        self.seats = Seats(scenario.nodes)
        self._transitions = Transitions(self)
        self._losses = sorted(scenario.losses, key=lambda x: x.at_s)
        self._seat_all()
        self.layout = self._new_layout(None)
        self.batches = batches_of(self.layout, scenario.duration_s)
        self.priorities = SimulatedPriorities(self)
        kind = RowGrain if self.grain_name == "rows" else FlowGrain
        self.grain: Grain = kind(
            self.layout, self.calibration, scenario.duration_s, seed, scenario.send_thread_s, self.batches
        )
        self.accounts = Accounts(self.grain, self.layout, scenario.timeout_s)
        self.totals = self.accounts.totals
        self.observed_s = 0.0
        self._others = OtherObservers(len(self.topologies), scenario.timeout_s)
        self._last: Snapshot | None = None
        self.cpu = GrantedCpu((n.cpu_pct for n in scenario.nodes), scenario.enforce)
        self._settle()

    # the port

    def observe(self, observer: str = CONTROLLER) -> Snapshot:
        if observer != CONTROLLER:
            return snapshot(self, *self._others.look(observer, self.accounts, self.layout, self.observed_s, self.now_s))
        self.accounts.up_to_date()
        seen = self._open_cycle()
        self._others.cycle_ends(self.accounts, self.layout)
        self.accounts.close_cycle(self.layout)
        self.observed_s, self._last = self.now_s, seen
        return seen

    def glance(self) -> Snapshot:
        """The cluster as it is, with the metrics of the last cycle; the present cycle is not ended by it."""
        return self._open_cycle() if self._last is None else with_metrics_of(self._last, self._open_cycle())

    def _open_cycle(self) -> Snapshot:
        return snapshot(self, self.accounts.counts, self.accounts.cycle_ended, self.now_s - self.observed_s)

    def apply(self, plan: Plan) -> Outcome:
        asks = plan.placement or plan.rescales or plan.shares_pct or plan.limits_pct or plan.cuts
        resting = self.priorities.resting
        rests = resting if plan.rests is None else frozenset(plan.rests)
        if not asks and rests == resting and plan.version in (None, self.version):
            return Outcome()
        enforced = plan if self.scenario.enforce else replace(plan, limits_pct={})
        refused = refusals(enforced, present(self))
        if refused:
            self.totals.refused += 1
            return Outcome(refused=refused)
        done = [*self._grant_cpu(plan), *self.priorities.rest(resting | rests)]
        intended = self._intended()
        found = changes(plan, self.topologies, intended)
        moves = sum(i in intended for change in found.values() for i in change.moves)
        rescales = sum(len(change.parallelism) for change in found.values())
        done += [line for name, change in found.items() for line in _lines(name, change)]
        order_to_commit_s = self._make(plan, found)
        # A topology that need no longer rest reads again only now, on the seats that it was given.
        return Outcome((*done, *self.priorities.rest(rests)), (), order_to_commit_s, moves, rescales)

    def _make(self, plan: Plan, found: dict[str, TopologyChange]) -> float | None:
        """Make the changes. Returns how long that took; None where nothing was ordered, or it is not in effect yet."""
        if not found:
            return None
        if any(found.values()):
            self.version += 1
            self.totals.reconfigurations += 1
        ordered_s = self.now_s
        if not self.started:
            self._transitions.commit({self.number[name]: change for name, change in found.items()})
            return 0.0
        self._transitions.order(plan.mode, found, plan.delay_s)
        if plan.mode is MigrationMode.BOUNDARY:
            return None
        waited = [self.states[self.number[name]] for name in found]
        give_up_s = self.now_s + _GIVE_UP_S
        if self.now_s < self.scenario.duration_s:  # a change that is under way when the run ends is left unfinished
            give_up_s = min(give_up_s, self.scenario.duration_s)
        while self.now_s < give_up_s - 1e-9:
            self._do_what_is_due()
            if not any(state.busy for state in waited):
                return self.now_s - ordered_s
            self._step(give_up_s)
        return None

    # time

    def start(self) -> None:
        """From here on changes take time. Plans applied before are what the topologies were submitted with."""
        if not self.started:
            self.started = True
            self.totals.reconfigurations = 0

    def advance(self, seconds: float) -> None:
        """Let time pass; less of it where a topology is held, since it needs a plan first."""
        self.start()
        target_s = self.now_s + seconds
        while self.now_s < target_s - 1e-9 and not self.priorities.held:
            self._step(target_s)

    def close(self) -> None:
        """Bring the totals up to date; the run is over."""
        self.accounts.up_to_date()
        self.accounts.close_cycle(self.layout)
        self.totals.settle(self.now_s, ResourcesInUse())

    def lose(self, node: str, slot: int | None = None, back_s: float | None = None) -> None:
        """A worker, or all of a node, dies. Its instances go to free seats. back_s: when it is there again."""
        self._transitions.lose(node, slot, back_s)

    def _step(self, target_s: float) -> None:
        """One step of time, cut short where something happens."""
        self._do_what_is_due()
        to_s = self._step_ends_s(target_s)
        rests, of = [t.name in self.priorities.resting for t in self.topologies], self.layout.topology_of
        running = [s.phase in (TopologyPhase.RUNNING, TopologyPhase.DRAINING) for s in self.states]
        reading = [s.phase is TopologyPhase.RUNNING and not r for s, r in zip(self.states, rests, strict=True)]
        wanted = self.grain.wanted(to_s - self.now_s)
        if not all(reading):  # a resting source wants no CPU, however many rows wait there
            idle = np.where(self.layout.is_source, ~np.array(reading)[of], ~np.array(running)[of])
            wanted = np.where(idle, 0.0, wanted)
        loss, slice_s = self.calibration.contention_loss, self.calibration.slice_s
        found = pace(self.cpu.most, wanted, self.layout.node_of, self.cpu.capacity, loss, slice_s)
        completed = self.grain.step(self.now_s, to_s, found, reading, running, self.accounts.counts)
        self.totals.passed(self.now_s, to_s, completed, self.states, rests)
        self.now_s = to_s
        for t, state in enumerate(self.states):
            if state.phase is TopologyPhase.DRAINING:
                self._transitions.stop_if_drained(t, state)

    def _step_ends_s(self, target_s: float) -> float:
        few = len(self.states) <= MANY_TOPOLOGIES
        draining = few and any(s.phase is TopologyPhase.DRAINING for s in self.states)
        step_s = self.scenario.step_s / 4 if draining else self.scenario.step_s
        due = [target_s, max(self.now_s + step_s, self.grain.quiet_until(self.now_s))]
        due += [x.at_s for x in self._losses[:1]]
        for moment_s in (self._transitions.next_return_s(), self.priorities.triggers.next_s()):
            due += [] if moment_s is None else [moment_s]
        due += [w for state in self.states if (w := state.wakes_s()) is not None]
        return min(x for x in due if x > self.now_s + 1e-9)

    def _do_what_is_due(self) -> None:
        while self._losses and self._losses[0].at_s <= self.now_s + 1e-9:
            loss = self._losses.pop(0)
            self.lose(loss.node, loss.slot, loss.back_s)
        self._transitions.bring_back_workers()
        self.priorities.pull_triggers()
        committed: dict[int, TopologyChange] = {}
        for t, state in enumerate(self.states):
            change = state.woken(self.now_s)
            if change is not None:
                committed[t] = change
        if committed:
            self.accounts.flush()
            self._transitions.commit(committed)

    # where instances are, and what they may use

    @property
    def workers(self) -> dict[Slot, Worker]:
        return self.seats.workers

    def running(self) -> Placement:
        """Where instances are, without those whose worker has died and that have no other yet."""
        if self.seats.complete:
            return self.layout.placement
        return Placement({i: s for i, s in self.layout.placement.slots.items() if s in self.workers})

    def _intended(self) -> Placement:
        """Where instances are, or will be from the next boundary on."""
        waiting = [moves for state in self.states if (moves := state.waiting.moves)]
        if not waiting:
            return self.running()
        slots = dict(self.layout.placement.slots)
        for moves in waiting:
            slots.update(moves)
        return Placement({i: s for i, s in slots.items() if s in self.workers})

    def _seat_all(self) -> None:
        """Seats as Spark spreads tasks over executors, until a plan says otherwise."""
        for t, topology in enumerate(self.topologies):
            slots = self.seats.after(topology, TopologyChange())
            if slots is None:
                self.states[t].stall(TopologyChange())
            else:
                self.seats.take(topology.name, slots)

    def _new_layout(self, before: WorldLayout | None) -> WorldLayout:
        placement = self.seats.placement(self.topologies)
        return WorldLayout(self.scenario.workloads, self.topologies, placement, self.scenario.nodes, self.seed, before)

    def lay_out(self) -> None:
        """Seats or operators have changed: everything that depends on them is computed again."""
        layout = self._new_layout(self.layout)
        self.accounts.change_layout(self.layout, layout)
        self._others.change_layout(self.layout, layout, self.grain.dense_traffic)
        self.layout = layout
        self.grain.arrange(layout, self.now_s)
        self.seats.check()
        self.cpu.keep_only(set(layout.instances))
        self._settle()

    def _grant_cpu(self, plan: Plan) -> list[str]:
        fresh, changed = self.cpu.grant(plan)
        if changed:
            self._settle()
        return [f"limit {i}={s:g}" for i, s in fresh.items()]

    def _settle(self) -> None:
        """Tell the totals what is in use from now on."""
        self.cpu.recompute(self.layout)
        placed = self.layout.node_of >= 0
        used = ResourcesInUse(
            reserved_cores=self.cpu.reserved_cores,
            limit_cores=self.cpu.limit_cores,
            memory_mb=sum(o.parallelism * (o.memory_mb or 0.0) for t in self.topologies for o in t.operators),
            nodes=int(np.unique(self.layout.node_of[placed]).size),
            workers=int(np.unique(self.layout.worker_of[placed]).size),
        )
        self.totals.settle(self.now_s, used)


def _lines(name: str, change: TopologyChange) -> list[str]:
    """What the change does, as an outcome lists it."""
    found = [f"scale {name}/{o}={n}" for o, n in change.parallelism.items()]
    found += [f"move {i}={s}" for i, s in change.moves.items()]
    return found if change else [f"cut {name}"]
