"""How topologies stop, change and go on: ordered changes, ends of epochs, and lost workers.

How long a change takes is computed in ``world/changes.py``; here it is carried out.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from barograph.engines.sim.world.changes import TopologyChange, after, pause_s, warm_up_s
from barograph.engines.sim.world.sync import Heard, heard
from barograph.engines.sim.world.topology_state import TopologyPhase, TopologyState
from barograph.model import MigrationMode, Slot

if TYPE_CHECKING:  # the engine passes itself
    from barograph.engines.sim.engine import Simulator

# An application is restarted from outside and a query by its driver: workers do not have to learn of it.
_HEARD_BY_WORKERS = (MigrationMode.WORKER, MigrationMode.BOUNDARY, MigrationMode.CUT, MigrationMode.WARM_CUT)
MANY_TOPOLOGIES = 20  # from this number on, topologies continue at ends of steps, not in between


class Transitions:
    def __init__(self, engine: "Simulator") -> None:
        self._engine = engine
        self._chance = np.random.default_rng([engine.seed, 11])  # where workers are in their cycles
        self._returns: list[tuple[float, Slot]] = []

    def next_return_s(self) -> float | None:
        """When the next lost worker is back."""
        return self._returns[0][0] if self._returns else None

    def order(self, mode: MigrationMode, found: dict[str, TopologyChange], delay_s: float) -> None:
        """Start these changes, by topology. delay_s: least time between the order and the cut of a warm-cut."""
        engine = self._engine
        if mode is MigrationMode.RESTART_APP:
            found = {t.name: found.get(t.name, TopologyChange(mode=mode)) for t in engine.topologies}
        told = self._heard(found) if mode in _HEARD_BY_WORKERS else Heard()
        if mode is MigrationMode.WORKER:
            found = self._with_neighbours(found)
        for name, change in found.items():
            t = engine.number[name]
            state = engine.states[t]
            if self._fails_rows(mode):
                state.fail(change, engine.now_s + self._pause_s(t, change))
                continue
            if mode is MigrationMode.BOUNDARY and engine.scenario.sync is None:
                state.keep_for_boundary(change)
                continue
            warm = mode is MigrationMode.WARM_CUT
            warm_s = warm_up_s(change, engine.topologies[t], engine.calibration) if warm else 0.0
            stands_s = engine.now_s + told.first_s + (max(warm_s, delay_s) if warm else 0.0)
            change = replace(change, ready_s=engine.now_s + told.last_s + warm_s)
            state.order(change, stands_s + engine.calibration.cut_order_s, stands_s)
            if state.phase is TopologyPhase.STOPPED:  # between two epochs the change takes its full time too
                state.stop(max(state.until_s, self._stands_until_s(t, state.change, engine.now_s)))
            elif state.phase is TopologyPhase.HELD:  # it is drained already
                state.stop(self._stands_until_s(t, state.change, engine.now_s))

    def _heard(self, found: dict[str, TopologyChange]) -> Heard:
        """When the workers that lose or get an instance learn of it; all have to learn of a new parallelism."""
        placement = self._engine.layout.placement
        slots = {s for c in found.values() for i, to in c.moves.items() for s in (to, placement.get(i)) if s}
        if any(c.parallelism for c in found.values()):
            slots |= set(self._engine.workers)
        return heard(self._engine.scenario.sync, slots, self._chance)

    def _fails_rows(self, mode: MigrationMode) -> bool:
        return self._engine.scenario.moves_fail_rows and mode is MigrationMode.WORKER

    def _with_neighbours(self, found: dict[str, TopologyChange]) -> dict[str, TopologyChange]:
        """Executors whose instances change are replaced; other topologies with an instance there stop with them."""
        placement = self._engine.layout.placement
        slots = {s for c in found.values() for i, s in c.moves.items()}
        slots |= {s for c in found.values() for i in c.moves if (s := placement.get(i)) is not None}
        hit = {i.topology for i, s in placement.slots.items() if s in slots}
        for slot in sorted(slots):
            self._engine.seats.renew(slot)
        return {name: found.get(name, TopologyChange(mode=MigrationMode.WORKER)) for name in sorted(hit | set(found))}

    def stop_if_drained(self, t: int, state: TopologyState) -> None:
        engine = self._engine
        last_s = engine.grain.drained(t, engine.now_s)
        if last_s is not None and state.change.level is not None:
            engine.priorities.hold(t)
        elif last_s is not None:
            until_s = max(engine.now_s, self._stands_until_s(t, state.change, max(last_s, state.since_s)))
            state.stop(self._end_of_step_s(until_s) if len(engine.states) > MANY_TOPOLOGIES else until_s)

    def _end_of_step_s(self, until_s: float) -> float:
        """On a large cluster topologies that go on within one step do so at its end, so that one layout serves all."""
        step_s = self._engine.scenario.step_s
        return math.ceil(until_s / step_s - 1e-9) * step_s

    def _stands_until_s(self, t: int, change: TopologyChange, stop_s: float) -> float:
        """When a topology that stopped at stop_s goes on, with the change made."""
        return max(stop_s, change.ready_s) + self._pause_s(t, change)

    def _pause_s(self, t: int, change: TopologyChange) -> float:
        engine = self._engine
        topology = after(change, engine.topologies[t])
        moves = engine.seats.moves(topology, change) if change else []
        return pause_s(change, topology, moves, engine.seats.warm, engine.calibration)

    def lose(self, node: str, slot: int | None, back_s: float | None) -> None:
        engine, calibration = self._engine, self._engine.calibration
        dead = engine.seats.lose(node, slot)
        if back_s is not None:
            self._returns += [(engine.now_s + back_s + calibration.executor_start_s, each) for each in dead]
            self._returns.sort()
        engine.version += 1
        pause = calibration.failure_seen_s + calibration.query_restart_s + calibration.boundary_s
        for name in sorted({i.topology for i, s in engine.layout.placement.slots.items() if s in dead}):
            t = engine.number[name]
            self._fail(t, engine.states[t].change, pause)

    def _fail(self, t: int, change: TopologyChange, pause: float) -> None:
        """The open epoch is lost and will be replayed; the topology stands still, then the change takes effect."""
        engine = self._engine
        engine.accounts.flush()
        engine.grain.fail(t, engine.now_s)
        engine.totals.failed(t)
        if (batches := engine.batches[t]) is not None:
            batches.fail()
        engine.states[t].fail(change, engine.now_s + pause)

    def bring_back_workers(self) -> None:
        """Bring back lost workers that are due; topologies that had no seats try again."""
        engine = self._engine
        while self._returns and self._returns[0][0] <= engine.now_s + 1e-9:
            engine.seats.renew(self._returns.pop(0)[1])
            engine.version += 1
            for state in engine.states:
                if state.phase is TopologyPhase.STALLED:
                    state.fail(state.change, engine.now_s + engine.calibration.query_restart_s)

    def commit(self, committed: dict[int, TopologyChange]) -> None:
        """The epochs of these topologies end, their changes take effect, and they go on."""
        engine = self._engine
        changed = False
        for t, change in committed.items():
            self._end_epoch(t, change)
            name = engine.topologies[t].name
            if not change and engine.seats.complete and engine.seats.of(name):
                continue
            changed = self._seat(t, change) or changed
        if changed:
            engine.lay_out()

    def _end_epoch(self, t: int, change: TopologyChange) -> None:
        engine = self._engine
        if engine.started and self._fails_rows(change.mode):
            engine.totals.failed_rows[t] += engine.grain.abandon(t, engine.now_s)
        engine.grain.commit(t)
        engine.totals.committed(t)
        if (batches := engine.batches[t]) is not None:
            batches.commit()
        engine.states[t].begin(engine.now_s)
        if change.level is not None:  # its trigger turned while it stood still
            engine.version += 1
            engine.states[t].hold(engine.now_s)
        else:
            engine.priorities.triggers.resumed(t, engine.now_s)

    def _seat(self, t: int, change: TopologyChange) -> bool:
        """Give the changed topology its seats. Returns whether that changes the layout."""
        engine = self._engine
        before = engine.topologies[t]
        topology = after(change, before)
        present, slots = engine.seats.of(topology.name), engine.seats.after(topology, change)
        if slots is None:
            engine.states[t].stall(change)
            return False
        if present == slots and topology == before:
            return False
        if engine.started:
            engine.totals.moves += sum(1 for i, s in slots.items() if i in present and present[i] != s)
        engine.seats.take(topology.name, slots)
        engine.topologies[t] = topology
        return True
