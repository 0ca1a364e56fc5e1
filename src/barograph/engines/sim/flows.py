"""The coarse grain: rows as an amount that flows, so that tens of thousands of instances are a few arrays.

Within a step an instance executes x = min(q + a, c): what waited, what arrived, what it could do. Who has no room
downstream executes less. Operators of the same depth are computed together, whatever topology they are of.

Complete times are sums along the way: age of what the source reads, hops, waiting behind what is queued, service, and
the waiting that chance causes below full load (Kingman): W = u/(1-u) * (ca^2 + cs^2)/2 * s with u = a/c, s the service
time, cs the spread of costs, ca that of gaps between arrivals.
"""

from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.batches import Batches
from barograph.engines.sim.calibration import Calibration
from barograph.engines.sim.cpu import Appetite, Pace, ReceivedRate
from barograph.engines.sim.due import DueTimes
from barograph.engines.sim.grain import Ended, Tally
from barograph.engines.sim.layout import Floats, Ints, Layout
from barograph.engines.sim.levels import Level, levels
from barograph.engines.sim.threads import SendingThreads

_DUST = 1e-6  # rows; below it a queue is empty


class FlowGrain:
    dense_traffic = False

    def __init__(
        self,
        layout: Layout,
        calibration: Calibration,
        until_s: float,
        seed: int,  # noqa: ARG002  # nothing in a flow is by chance
        send_thread_s: float = 0.0,
        batches: Sequence[Batches | None] = (),
    ) -> None:
        self._threads = SendingThreads(layout.workers, send_thread_s) if send_thread_s else None
        self._batches = [(t, b) for t, b in enumerate(batches) if b is not None]
        self._calibration = calibration
        self._until_s = until_s
        operators = len(layout.operators)
        n = len(layout.instances)
        self._loads: dict[str, DueTimes] = {}
        self._sent, self._done = np.zeros(operators), np.zeros(operators)
        self._sent_committed, self._done_committed = np.zeros(operators), np.zeros(operators)
        self._skipped, self._skipped_committed = np.zeros(operators), np.zeros(operators)
        self._given_up = np.zeros(operators)
        self._waiting, self._read, self._committed = np.zeros(n), np.zeros(n), np.zeros(n)
        self._ended: list[tuple[Ints, Floats, Floats]] = []
        self._n_of = [o.n for o in layout.operators]
        self._layout = layout
        self._order: Ints = np.arange(n)
        self.arrange(layout, 0.0)

    def arrange(self, layout: Layout, now_s: float) -> None:
        self._carry(layout)
        self._layout = layout
        self._levels, self._order, self._start = levels(layout, self._calibration.hops, self._threads is not None)
        order = self._order
        self._place = np.empty_like(order)
        self._place[order] = np.arange(order.size)
        self._operator = np.repeat(layout.order, [layout.operators[o].n for o in layout.order])
        work = [layout.operators[o].work for o in range(len(layout.operators))]
        unit = np.array([w.cost_s for w in work])[self._operator]
        self._spread2 = np.array([w.spread**2 for w in work])[self._operator]
        for level in self._levels:
            unit[level.span] += level.send_s
            if level.target.size:
                unit += level.receive_s
        self._unit_s = unit
        self._clock = layout.clock[order]
        self._topology = layout.topology_of[order]
        self._is_source = np.array([o.is_source for o in layout.operators])[self._operator]
        self._is_sink = np.array([o.is_sink for o in layout.operators])[self._operator]
        self._sinks = np.flatnonzero(self._is_sink)
        self._burst = np.zeros(order.size)
        for level in self._levels:
            np.maximum.at(self._burst, level.target, level.burst)
        self._sources(now_s)
        self._arriving = np.zeros(order.size)
        self._appetite, self._received = Appetite(order.size), ReceivedRate(order.size, self._calibration.in_flight_s)
        self._waiting, self._read, self._committed = (
            self._waiting[order],
            self._read[order],
            self._committed[order],
        )
        self._traffic = [np.zeros(level.target.size) for level in self._levels]

    def _carry(self, layout: Layout) -> None:
        """State in the order of the new layout. A resized operator holds nothing; sources are never resized."""
        for name in ("_waiting", "_read", "_committed"):
            by_place = getattr(self, name)
            old = np.empty_like(by_place)
            old[self._order] = by_place
            fresh = np.zeros(len(layout.instances))
            for before, part in zip(self._layout.operators, layout.operators, strict=True):
                if before.n == part.n:
                    fresh[part.span] = old[before.span]
            setattr(self, name, fresh)

    def _sources(self, now_s: float) -> None:
        """Instances that read, and the load each takes its fraction of; equal loads are worked out once."""
        self._reader = np.flatnonzero(self._is_source)
        self._live = np.array([self._layout.operators[o].work.live for o in self._operator[self._reader]], dtype=bool)
        load_of, fraction = [], []
        numbers: dict[str, int] = {}
        for o in dict.fromkeys(self._operator[self._reader]):
            part = self._layout.operators[o]
            assert part.work.load is not None
            text = part.work.load.text
            if text not in self._loads:
                self._loads[text] = DueTimes(part.work.load, [1.0], self._until_s)
            load_of += [numbers.setdefault(text, len(numbers))] * part.n
            fraction += part.work.fractions(part.n)
        self._load_of = np.array(load_of, dtype=np.intp)
        self._fraction = np.array(fraction)
        self._load_list = [self._loads[text] for text in numbers]
        self._due_before = self._due(now_s)

    def _due(self, t_s: float) -> Floats:
        """Rows of each reading instance due by then."""
        total = np.array([load.count(t_s) for load in self._load_list])
        found: Floats = total[self._load_of] * self._fraction
        return found

    def _due_time(self, who: Ints, amounts: Floats) -> Floats:
        """When readers ``who`` had so many rows due."""
        found = np.empty(amounts.size)
        load_of = self._load_of[who]
        for number in np.unique(load_of):
            mine = load_of == number
            found[mine] = self._load_list[number].moment(amounts[mine] / self._fraction[who[mine]])
        return found

    def step(
        self,
        from_s: float,
        to_s: float,
        pace: Pace,
        reading: list[bool],
        running: list[bool],
        tally: Tally,
    ) -> Floats:
        dt = to_s - from_s
        order, n = self._order, self._order.size
        runs = np.array(running)[self._topology]
        speed = np.where(runs, pace.speed[order], 0.0)
        wake = np.zeros(n) if pace.wait_s is None else pace.wait_s[order]
        rate = speed * self._clock / self._unit_s  # rows a second each could do
        able = rate * dt
        waited = self._waiting
        takes = self._received.of(rate)
        hold = np.maximum(self._calibration.in_flight_min_rows, self._calibration.in_flight_s * takes)
        room = np.maximum(0.0, hold - waited + takes * dt)
        arrived, executed = np.zeros(n), np.zeros(n)
        blocked, ages = np.zeros(n), np.zeros((2, n))  # ages: from due, from read; times the rows that have them
        due = self._due(to_s)
        reader = self._reader
        owed = self._due_before - self._read[reader]
        never = np.where(self._live & ~np.array(reading)[self._topology[reader]], due - self._due_before, 0.0)
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
        return self._count(to_s, dt, speed, able, arrived, executed, blocked, ages, tally)

    def _read_on(
        self, level: Level, x: Floats, able: Floats, from_s: float, to_s: float, owed: Floats, ages: Floats
    ) -> None:
        """Ages of what the sources of a level read: falling evenly while they catch up, 0 once they have.

        A source that is owed B rows and reads c a step while a fall due has caught up after B / (c - a) of the step.
        """
        mine = np.flatnonzero((self._reader >= level.span.start) & (self._reader < level.span.stop))
        before = self._read[self._reader[mine]]
        at = self._reader[mine] - level.span.start
        behind = (owed[mine] > _DUST) | (self._due_before[mine] - before > x[at])
        if not behind.any():
            return
        mine, before, at = mine[behind], before[behind], at[behind]
        x, able = x[at], able[at]
        due_from, due_to = np.split(self._due_time(np.tile(mine, 2), np.concatenate([before, before + x])), 2)
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
        """Turn what came in with its age into what goes out: divide by rows that came, add the time spent here.

        A queue before an instance that waits for room downstream moves as fast as that leaves room (takes).
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
            age = np.where(came > 0, ages[:, at] / came, self._last_age(at))
        self._age[:, at] = age
        ages[:, at] = (age + spent) * x

    def _last_age(self, at: slice) -> Floats:
        """Of what still waits when nothing new came."""
        if not hasattr(self, "_age") or self._age.shape[1] != self._order.size:
            self._age: Floats = np.zeros((2, self._order.size))
        return self._age[:, at]

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
        tally: Tally,
    ) -> Floats:
        place = self._place
        with np.errstate(divide="ignore", invalid="ignore"):
            busy = np.where(able > 0, np.minimum(executed / able, 1.0), 0.0) * dt
        self._received.saw(executed, np.where(blocked > 0, dt, busy))  # what is left over waits until the step's end
        emitted = np.zeros(executed.size)
        for level in self._levels:
            if level.target.size:
                emitted[level.span] = executed[level.span] * level.out_per_row
        tally.arrived += arrived[place]
        tally.executed += executed[place]
        tally.emitted += emitted[place]
        tally.busy_s += busy[place]
        tally.cpu_s += (busy * speed)[place]
        tally.blocked_s += np.minimum(blocked, dt - busy)[place]
        sinks = self._sinks[executed[self._sinks] > 0]
        rows = executed[sinks]
        topology = self._topology[sinks]
        self._ended.append((topology, ages[:, sinks] / rows, rows))
        completed: Floats = np.bincount(topology, rows, len(self._layout.topologies)).astype(np.float64)
        for t, batches in self._batches:
            batches.flowed(float(completed[t]), to_s)
        return completed

    def deliver(self, tally: Tally) -> None:
        for level, traffic in zip(self._levels, self._traffic, strict=True):
            for edge, at in level.edges:
                tally.traffic[edge][0] += traffic[at]
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

    def quiet_until(self, now_s: float) -> float:
        """A step costs the same however little flows."""
        return now_s

    def pending(self, now_s: float) -> Floats:  # noqa: ARG002
        return self._waiting[self._place]

    def drained(self, topology: int, now_s: float) -> float | None:
        held = self._waiting[(self._topology == topology) & ~self._is_source]
        return now_s if not held.any() else None

    def _of(self, topology: int) -> list[int]:
        return [p.index for p in self._layout.operators if p.topology == topology]

    def commit(self, topology: int) -> None:
        mine, operators = self._topology == topology, self._of(topology)
        self._committed[mine] = self._read[mine]
        self._sent_committed[operators] = self._sent[operators]
        self._done_committed[operators] = self._done[operators]
        self._skipped_committed[operators] = self._skipped[operators]

    def fail(self, topology: int, now_s: float) -> None:  # noqa: ARG002
        mine, operators = self._topology == topology, self._of(topology)
        self._read[mine] = self._committed[mine]
        self._waiting[mine & ~self._is_source] = 0.0
        self._waiting[self._reader] = self._due_before - self._read[self._reader]
        self._sent[operators] = self._sent_committed[operators]
        self._done[operators] = self._done_committed[operators]
        self._skipped[operators] = self._skipped_committed[operators]

    def abandon(self, topology: int, now_s: float) -> float:
        mine = self._topology == topology
        self._due_before = self._due(now_s)
        self._waiting[self._reader] = self._due_before - self._read[self._reader]
        rows = np.where(mine, self._waiting, 0.0)
        sources = mine & self._is_source
        self._read[sources] += rows[sources]
        self._waiting[mine] = 0.0
        self._given_up += np.bincount(self._operator, weights=rows, minlength=self._given_up.size)
        return float((rows * np.array(self._layout.gain)[self._operator]).sum())

    def read_rows(self) -> Floats:
        read = np.bincount(self._operator, weights=self._read, minlength=self._given_up.size)
        source = np.array([o.is_source for o in self._layout.operators])
        found: Floats = np.where(source, read - self._given_up, 0.0)
        return found

    def unfinished(self, topology: int, now_s: float) -> tuple[Floats, Floats]:
        """A source's backlog in a hundred slices, and what is in flight at the age its operator last saw."""
        gain = np.array(self._layout.gain)[self._operator]
        ages, rows = [np.empty(0)], [np.empty(0)]
        mine = np.flatnonzero(self._topology[self._reader] == topology)
        backlog = self._due_before - self._read[self._reader]
        parts = np.repeat((np.arange(100) + 0.5) / 100, mine.size)
        who = np.tile(mine, 100)
        due = self._due_time(who, self._read[self._reader[who]] + parts * backlog[who])
        ages.append(np.maximum(0.0, now_s - due))
        rows.append(backlog[who] / 100 * gain[self._reader[who]])
        flying = np.flatnonzero((self._topology == topology) & ~self._is_source & (self._waiting > 0))
        ages.append(self._last_age(slice(None))[0, flying])
        rows.append(self._waiting[flying] * gain[flying])
        return np.concatenate(ages), np.concatenate(rows)

    def unaccounted(self, now_s: float) -> float:
        held = np.bincount(self._operator, weights=self._waiting, minlength=self._done.size)
        read = np.bincount(self._operator, weights=self._read, minlength=self._done.size)
        source = np.array([o.is_source for o in self._layout.operators])
        ended = self._done + self._given_up
        missing = np.where(source, np.abs(ended + self._skipped - read), np.abs(self._sent - ended - held))
        scale = np.maximum(1.0, np.maximum(self._sent, self._done))
        late = float(np.abs(self._due(now_s) - self._due_before).sum())
        return float(missing[missing > 1e-6 * scale].sum()) + (late if late > 1e-3 else 0.0)
