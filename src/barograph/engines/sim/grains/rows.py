"""The fine grain: every row is computed, many at a time.

Time advances in steps. Within a step the operators are computed in topological order; all rows waiting for an operator
are sorted by arrival, and each instance serves its own one after the other (``row_service.py``). A row that
starts within a step is served in it, even if it ends later.

Backlog stays at the source: an instance that has no room left for what a row would send waits with that row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.engines.sim.calibration import Calibration
from barograph.engines.sim.grains.batches import BatchProgress
from barograph.engines.sim.grains.grain import CycleCounts, Ended
from barograph.engines.sim.grains.row_queue import ARRIVE, DUE, READ, WORK, RowQueue, no_rows
from barograph.engines.sim.grains.row_service import most_that_fit, position, starts
from barograph.engines.sim.grains.row_state import RowState
from barograph.engines.sim.world.cpu import Appetite, CpuPace, ReceivedRate
from barograph.engines.sim.world.layout import Floats, Ints, OperatorPart, WorldLayout
from barograph.engines.sim.world.routes import Route, SentRows
from barograph.engines.sim.world.threads import SendingThreads

_NOISE = 1 << 16


@dataclass(eq=False, slots=True)
class _RowStep:
    """One step of time. rate: seconds of work that each instance does in a second. room: rows it has room for.

    arrived: rows that came to each instance. through: rows that found room downstream, infinite where all did.
    completed: rows at the sinks, by topology. left_worker: rows that left each worker.
    """

    from_s: float
    to_s: float
    pace: CpuPace
    rate: Floats
    room: Floats
    arrived: Floats
    through: Floats
    completed: Floats
    left_worker: Floats
    counts: CycleCounts


class RowGrain(RowState):
    dense_traffic = True

    def __init__(
        self,
        layout: WorldLayout,
        calibration: Calibration,
        until_s: float,
        seed: int,
        send_thread_s: float = 0.0,
        batches: Sequence[BatchProgress | None] = (),
    ) -> None:
        self._calibration = calibration
        self._threads = SendingThreads(layout.workers, send_thread_s) if send_thread_s else None
        self._batches = batches or [None] * len(layout.topologies)
        self._noise = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 2 * _NOISE)
        self._at = seed & 0xFFFF
        self._ended: list[list[Floats]] = [[] for _ in layout.topologies]  # (from due, from read) of rows that ended
        super().__init__(layout, calibration.hops, until_s, seed)

    def arrange(self, layout: WorldLayout, now_s: float) -> None:
        super().arrange(layout, now_s)
        n = len(layout.instances)
        self._appetite, self._received = Appetite(n), ReceivedRate(n, self._calibration.in_flight_s)

    def step(
        self,
        from_s: float,
        to_s: float,
        pace: CpuPace,
        reading: list[bool],
        running: list[bool],
        counts: CycleCounts,
    ) -> Floats:
        layout, dt = self._layout, to_s - from_s
        rate = pace.speed * layout.clock
        able = rate / self._unit_s  # rows a second that each instance could execute
        executed, spent_s = counts.executed.copy(), counts.busy_s + counts.blocked_s
        takes = self._received.of(able)
        hold = np.maximum(self._calibration.in_flight_min_rows, self._calibration.in_flight_s * takes)
        room = hold - self._waiting + takes * dt
        arrived = np.zeros(len(layout.instances))
        through = np.full(arrived.size, np.inf)
        completed, left_worker = np.zeros(len(layout.topologies)), np.zeros(layout.workers)
        now = _RowStep(from_s, to_s, pace, rate, room, arrived, through, completed, left_worker, counts)
        for o in layout.order:
            part, queue = layout.operators[o], self._queues[o]
            if part.is_source:
                due = self._due[o].rows_due(to_s)
                if part.work.live and not reading[part.topology]:
                    queue.skip(due)
                arrived[part.span] = due - queue.seen
                queue.seen = due
            if not running[part.topology]:
                continue
            if not part.is_source:
                rows, of = queue.in_order()
            elif reading[part.topology]:
                rows, of = self._fresh(part, queue, able[part.span] * dt)
            else:
                rows, of = no_rows()
            self._serve(part, queue, rows, of, now)
        counts.arrived += arrived
        self._appetite.saw(arrived, through, dt)
        self._received.saw(counts.executed - executed, counts.busy_s + counts.blocked_s - spent_s)
        if self._threads is not None:
            self._threads.sent(left_worker, dt)
        for part, queue in zip(layout.operators, self._queues, strict=True):
            waits = queue.seen - queue.read if part.is_source else queue.waiting_by_instance(part.n)
            self._waiting[part.span] = waits
        return completed

    def deliver(self, counts: CycleCounts) -> None:
        """Nothing is left to do: every step counts its traffic at once."""

    def flush(self, ended: Ended) -> None:
        for t, found in enumerate(self._ended):
            if found:
                times = np.concatenate(found, axis=1)
                ended.due[t].add(times[0])
                ended.read[t].add(times[1])
                found.clear()

    def _fresh(self, part: OperatorPart, queue: RowQueue, able: Floats) -> tuple[Floats, Ints]:
        """Rows a source has due and could read in this step, and a few more."""
        count = np.minimum(queue.seen - queue.read, np.ceil(able * 1.2).astype(np.int64) + 2)
        of = np.repeat(np.arange(part.n), count)
        first = np.cumsum(count) - count
        k = np.arange(of.size) - first[of] + queue.read[of]
        rows = np.empty((4, of.size))
        rows[DUE] = self._due[part.index].due_s(of, k)
        rows[ARRIVE] = rows[DUE]
        rows[WORK] = self._work(part, of.size)
        return rows, of

    def _work(self, part: OperatorPart, n: int) -> Floats:
        """CPU seconds of n rows: uniform about the mean with the given spread, from a long table of random numbers."""
        if part.work.spread == 0.0:
            return np.full(n, part.work.cost_s)
        self._at = (self._at * 25173 + 13849) & 0xFFFF
        noise = self._noise[self._at : self._at + n] if n <= _NOISE else np.resize(self._noise, n)
        found: Floats = part.work.cost_s * (1.0 + np.sqrt(3.0) * part.work.spread * noise)
        return found

    def _serve(self, part: OperatorPart, queue: RowQueue, rows: Floats, of: Ints, now: _RowStep) -> None:
        """Each instance of the operator serves those of its rows that start within the step."""
        from_s, to_s, pace, counts = now.from_s, now.to_s, now.pace, now.counts
        free_before = queue.free_s
        if of.size == 0:
            busy = np.minimum(np.maximum(free_before - from_s, 0.0), to_s - from_s)
            if busy.any():
                counts.busy_s[part.span] += busy
                counts.cpu_s[part.span] += busy * pace.speed[part.span]
            if not part.is_source:
                queue.rows, queue.of = rows, of
            return
        service = (rows[WORK] + self._send_s[part.span][of]) / now.rate[part.span][of]
        awake = rows[ARRIVE] if pace.wait_s is None else rows[ARRIVE] + pace.wait_s[part.span][of]
        start = starts(np.maximum(awake, np.maximum(free_before, from_s)[of]) - from_s, service, of)
        ready = np.flatnonzero(start < to_s - from_s)
        if part.is_source:
            rows[READ] = start + from_s
        finish = start.take(ready) + service.take(ready) + from_s
        of_done = of.take(ready)
        passed = rows[DUE : READ + 1].take(ready, axis=1)
        sent = [self._routes[e].send(of_done, now.room) for e in part.outputs]
        stopped = None
        if any(s.over for s in sent):
            most = most_that_fit(sent, rows[ARRIVE].take(ready), of_done, part.n)
            keep = position(of_done, part.n) < most[of_done]
            stopped = np.bincount(of_done, minlength=part.n) > most
            for s in sent:
                s.keep(keep)
            ready = ready[keep]
            finish, of_done, passed = finish[keep], of_done[keep], passed.compress(keep, axis=1)
        count = np.bincount(of_done, minlength=part.n)
        last = np.cumsum(count) - 1
        has = count > 0
        free_after = free_before.copy()
        free_after[has] = finish[last[has]]
        work_s = np.bincount(of_done, weights=service.take(ready), minlength=part.n)
        busy = work_s + np.maximum(free_before - from_s, 0.0) - np.maximum(free_after - to_s, 0.0)
        busy = np.clip(busy, 0.0, to_s - from_s)
        queue.free_s = free_after
        queue.done += of_done.size
        counts.executed[part.span] += count
        counts.busy_s[part.span] += busy
        counts.cpu_s[part.span] += busy * pace.speed[part.span]
        if stopped is not None:
            now.through[part.span] = np.where(stopped, count, np.inf)
            blocked_s = np.maximum(to_s - np.maximum(free_after, from_s), 0.0)
            counts.blocked_s[part.span] += np.where(stopped, blocked_s, 0.0)
        for s in sent:
            self._pass_on(s, count, finish, passed, part, now)
        if part.is_sink:
            now.completed[part.topology] += of_done.size
            self._ended[part.topology].append(finish - passed)
            if (batches := self._batches[part.topology]) is not None:
                batches.ended(passed[0], finish)
        if part.is_source:
            queue.read = queue.read + count
        else:
            waits = np.ones(of.size, dtype=np.bool_)
            waits[ready] = False
            left = np.flatnonzero(waits)
            queue.rows, queue.of = rows.take(left, axis=1), of.take(left)

    def _pass_on(
        self, sent: SentRows, executed: Ints, finish: Floats, passed: Floats, part: OperatorPart, now: _RowStep
    ) -> None:
        """Put the rows that an operator sends over one edge into the target's inbox."""
        route = sent.route
        target = self._layout.operators[route.edge.target]
        queue = self._queues[route.edge.target]
        route.settle(sent, executed)
        n = sent.target.size
        now.counts.traffic[route.edge.index] += sent.counts
        now.counts.emitted[part.span] += sent.counts.sum(axis=1)
        got = sent.counts.sum(axis=0)
        now.arrived[target.span] += got
        now.room[target.span] -= got
        queue.sent += n
        if n == 0:
            return
        rows = np.empty((4, n))
        way_s = self._way_s(route, sent, now)[sent.pair]
        rows[ARRIVE] = (finish if sent.row is None else finish[sent.row]) + way_s
        rows[DUE : READ + 1] = passed if sent.row is None else passed.take(sent.row, axis=1)
        rows[WORK] = self._work(target, n) + route.receive_pair_s[sent.pair]
        queue.inbox.append((rows, sent.target))

    def _way_s(self, route: Route, sent: SentRows, now: _RowStep) -> Floats:
        """How long a row takes between each pair, with its wait for the thread that sends for the worker it leaves."""
        if self._threads is None:
            return route.delay_s
        np.add.at(now.left_worker, route.worker, (sent.counts * route.leaves).sum(axis=1))
        wait_s = route.leaves * self._threads.wait_s[route.worker][:, None]
        found: Floats = route.delay_s + wait_s.ravel()
        return found

    def wanted(self, dt_s: float) -> Floats:
        return self._appetite.cores(self._waiting, self._unit_s / self._layout.clock, dt_s)
