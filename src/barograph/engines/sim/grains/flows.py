"""The coarse grain: rows as an amount that flows, so that tens of thousands of instances are a few arrays.

Within a step an instance executes x = min(q + a, c): q rows waited, a arrived, and it can execute c. An instance
without room downstream executes less. Operators of the same depth are computed together, of all topologies.

Complete times are sums along the way: age of what the source reads, hops, waiting behind what is queued, service, and
the waiting that chance causes below full load (Kingman): W = u/(1-u) * (ca^2 + cs^2)/2 * s with u = a/c, s the service
time, cs the spread of costs, ca that of gaps between arrivals.
"""

from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.calibration import Calibration
from barograph.engines.sim.grains.batches import BatchProgress
from barograph.engines.sim.grains.flow_state import FlowState
from barograph.engines.sim.grains.grain import CycleCounts, Ended
from barograph.engines.sim.grains.levels import Level
from barograph.engines.sim.world.cpu import Appetite, CpuPace, ReceivedRate
from barograph.engines.sim.world.layout import Floats, Ints, WorldLayout
from barograph.engines.sim.world.threads import SendingThreads

_DUST = 1e-6  # rows; below it a queue is empty


class FlowGrain(FlowState):
    dense_traffic = False

    def __init__(
        self,
        layout: WorldLayout,
        calibration: Calibration,
        until_s: float,
        seed: int,  # noqa: ARG002  # flows are not random
        send_thread_s: float = 0.0,
        batches: Sequence[BatchProgress | None] = (),
    ) -> None:
        self._calibration = calibration
        self._threads = SendingThreads(layout.workers, send_thread_s) if send_thread_s else None
        self._batches = [(t, b) for t, b in enumerate(batches) if b is not None]
        self._ended: list[tuple[Ints, Floats, Floats]] = []
        super().__init__(layout, calibration.hops, until_s, self._threads is not None)

    def arrange(self, layout: WorldLayout, now_s: float) -> None:
        super().arrange(layout, now_s)
        work = [operator.work for operator in layout.operators]
        unit = np.array([w.cost_s for w in work])[self._operator]
        self._spread2 = np.array([w.spread**2 for w in work])[self._operator]
        for level in self._levels:
            unit[level.span] += level.send_s
            if level.target.size:
                unit += level.receive_s
        self._unit_s = unit
        self._clock = layout.clock[self._order]
        self._sinks = np.flatnonzero(np.array([o.is_sink for o in layout.operators])[self._operator])
        n = self._order.size
        self._burst = np.zeros(n)
        for level in self._levels:
            np.maximum.at(self._burst, level.target, level.burst)
        self._arriving = np.zeros(n)
        self._appetite, self._received = Appetite(n), ReceivedRate(n, self._calibration.in_flight_s)
        self._traffic = [np.zeros(level.target.size) for level in self._levels]

    def step(
        self,
        from_s: float,
        to_s: float,
        pace: CpuPace,
        reading: list[bool],
        running: list[bool],
        counts: CycleCounts,
    ) -> Floats:
        dt = to_s - from_s
        order, n = self._order, self._order.size
        runs = np.array(running)[self._topology]
        speed = np.where(runs, pace.speed[order], 0.0)
        wake = np.zeros(n) if pace.wait_s is None else pace.wait_s[order]
        rate = speed * self._clock / self._unit_s  # rows a second that each could execute
        able = rate * dt
        waited = self._waiting
        takes = self._received.of(rate)
        hold = np.maximum(self._calibration.in_flight_min_rows, self._calibration.in_flight_s * takes)
        room = np.maximum(0.0, hold - waited + takes * dt)
        arrived, executed = np.zeros(n), np.zeros(n)
        blocked, ages = np.zeros(n), np.zeros((2, n))  # ages: from due, from read; times the rows that have them
        due = self._sources.due(to_s)
        reader = self._reader
        owed = self._due_before - self._read[reader]
        never = np.where(self._sources.live & ~np.array(reading)[self._topology[reader]], due - self._due_before, 0.0)
        self._read[reader] += never
        self._skipped += np.bincount(self._operator[reader], weights=never, minlength=self._skipped.size)
        arrived[reader] = due - self._due_before - never
        self._due_before = due
        waiting = waited.copy()
        waiting[reader] = np.maximum(0.0, due - self._read[reader])
        sent = np.zeros(self._sent.size)
        left_worker = np.zeros(self._layout.workers)
        for level, traffic in zip(self._levels, self._traffic, strict=True):
            at = level.span
            into = waiting[at] + np.where(self._is_source[at], 0.0, arrived[at])
            able_here = able[at] * np.where(self._is_source[at], np.array(reading)[self._topology[at]], 1.0)
            x = np.minimum(into, able_here)
            if level.target.size:
                x, fraction = level.throttle(x, room)
                blocked[at] = (1.0 - fraction) * np.minimum(1.0, into / np.maximum(able[at], _DUST)) * dt
            left = into - x
            left[left < _DUST * np.minimum(1.0, into)] = 0.0
            executed[at] = x
            if level.has_sources:
                self._read_on(level, x, able[at], from_s, to_s, owed, ages)
            self._delay(level, x, arrived[at], waited[at], left, rate, takes, hold, wake, ages)
            waiting[at] = left
            if level.target.size:
                contribution = level.spread(x)
                got = np.bincount(level.target, weights=contribution, minlength=n)
                arrived += got
                room -= got
                traffic += contribution
                sent += np.bincount(level.target_operator, weights=contribution, minlength=sent.size)
                if self._threads is not None:
                    left_worker += contribution @ level.leaving
                    level.pass_ages(x, ages, contribution, level.leaving @ self._threads.wait_s)
                else:
                    level.pass_ages(x, ages, contribution)
        self._read[reader] += executed[reader]
        waiting[reader] = due - self._read[reader]
        self._waiting = waiting
        self._arriving = arrived / dt
        if self._threads is not None:
            self._threads.sent(left_worker, dt)
        self._appetite.saw(arrived, np.where(blocked > 0, executed, np.inf), dt)
        self._sent += sent
        self._done += np.bincount(self._operator, weights=executed, minlength=self._done.size)
        return self._count(to_s, dt, speed, able, arrived, executed, blocked, ages, counts)

    def _read_on(
        self, level: Level, x: Floats, able: Floats, from_s: float, to_s: float, owed: Floats, ages: Floats
    ) -> None:
        """Ages of what the sources of a level read: falling evenly while they catch up, 0 once they have.

        With a backlog of B rows, c rows read in a step and a rows due in it, it has caught up after B / (c - a) of it.
        """
        mine = np.flatnonzero((self._reader >= level.span.start) & (self._reader < level.span.stop))
        before = self._read[self._reader[mine]]
        at = self._reader[mine] - level.span.start
        behind = (owed[mine] > _DUST) | (self._due_before[mine] - before > x[at])
        if not behind.any():
            return
        mine, before, at = mine[behind], before[behind], at[behind]
        x, able = x[at], able[at]
        due_from, due_to = np.split(self._sources.moment(np.tile(mine, 2), np.concatenate([before, before + x])), 2)
        age_from, age_to = np.maximum(0.0, from_s - due_from), np.maximum(0.0, to_s - due_to)
        fresh = self._due_before[mine] - before - owed[mine]
        caught_up = owed[mine] + fresh - x <= _DUST * np.maximum(1.0, x)
        spare = np.maximum(able - fresh, _DUST)
        part = np.minimum(1.0, np.minimum(1.0, owed[mine] / spare) * able / np.maximum(x, _DUST))
        age = np.where(caught_up, 0.5 * age_from * part, 0.5 * (age_from + age_to))
        ages[0, self._reader[mine]] += age * x

    def _delay(
        self,
        level: Level,
        x: Floats,
        arrived: Floats,
        waited: Floats,
        left: Floats,
        rate: Floats,
        takes: Floats,
        hold: Floats,
        wake: Floats,
        ages: Floats,
    ) -> None:
        """Ages of the rows that go out: mean age of the rows that came in, plus the time spent here.

        The queue of an instance that waits for room downstream moves as fast as room becomes free (takes).
        """
        at = level.span
        speed = rate[at]
        ok = speed > 0
        serve = np.where(ok, 1.0 / np.where(ok, speed, 1.0), 0.0)
        source = self._is_source[at]
        moves = takes[at] > 0
        behind = np.where(moves, 0.5 * (waited + left) / np.where(moves, takes[at], 1.0), 0.0)
        queue = np.where(source, 0.0, behind)
        load = np.where(ok, self._arriving[at] * serve, 0.0)
        u = np.minimum(load, 0.98)
        chance = u / (1.0 - u) * 0.5 * (self._burst[at] + self._spread2[at]) * serve
        chance = np.where(source, 0.5 * u * self._spread2[at] * serve, np.minimum(chance, hold[at] * serve))
        spent = np.maximum(queue, chance + np.where(source, 0.0, wake[at])) + serve
        came = np.where(source, x, arrived)
        with np.errstate(divide="ignore", invalid="ignore"):
            age = np.where(came > 0, ages[:, at] / came, self._age[:, at])
        self._age[:, at] = age
        ages[:, at] = (age + spent) * x

    def _count(
        self,
        to_s: float,
        dt: float,
        speed: Floats,
        able: Floats,
        arrived: Floats,
        executed: Floats,
        blocked: Floats,
        ages: Floats,
        counts: CycleCounts,
    ) -> Floats:
        place = self._place
        with np.errstate(divide="ignore", invalid="ignore"):
            busy = np.where(able > 0, np.minimum(executed / able, 1.0), 0.0) * dt
        self._received.saw(executed, np.where(blocked > 0, dt, busy))  # what is left over waits until the step's end
        emitted = np.zeros(executed.size)
        for level in self._levels:
            if level.target.size:
                emitted[level.span] = executed[level.span] * level.out_per_row
        counts.arrived += arrived[place]
        counts.executed += executed[place]
        counts.emitted += emitted[place]
        counts.busy_s += busy[place]
        counts.cpu_s += (busy * speed)[place]
        counts.blocked_s += np.minimum(blocked, dt - busy)[place]
        sinks = self._sinks[executed[self._sinks] > 0]
        rows = executed[sinks]
        topology = self._topology[sinks]
        self._ended.append((topology, ages[:, sinks] / rows, rows))
        completed: Floats = np.bincount(topology, rows, len(self._layout.topologies)).astype(np.float64)
        for t, batches in self._batches:
            batches.flowed(float(completed[t]), to_s)
        return completed

    def deliver(self, counts: CycleCounts) -> None:
        for level, traffic in zip(self._levels, self._traffic, strict=True):
            for edge, at in level.edges:
                counts.traffic[edge][0] += traffic[at]
            traffic[:] = 0.0

    def flush(self, ended: Ended) -> None:
        if not self._ended:
            return
        topology = np.concatenate([t for t, _, _ in self._ended])
        times = np.concatenate([a for _, a, _ in self._ended], axis=1)
        rows = np.concatenate([r for _, _, r in self._ended])
        by = np.argsort(topology, kind="stable")
        bounds = np.searchsorted(topology[by], np.arange(len(ended.due) + 1))
        for t in range(len(ended.due)):
            mine = by[bounds[t] : bounds[t + 1]]
            ended.due[t].add(times[0, mine], rows[mine])
            ended.read[t].add(times[1, mine], rows[mine])
        self._ended = []

    def wanted(self, dt_s: float) -> Floats:
        return self._appetite.cores(self._waiting, self._unit_s / self._clock, dt_s)[self._place]
