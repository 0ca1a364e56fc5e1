"""The fine grain: every row is computed, many at a time.

Time advances in steps. Within a step the operators are gone through in topological order; all rows before an operator
are put in order of arrival, and each instance serves its own one after the other. With a_k the arrival of a row, c_k
the sum of service times up to and including it, finish_k = c_k + max over j <= k of (a_j - c_(j-1)) (Lindley), which
is a running sum and a running maximum. A row that starts within a step is served in it, even if it ends later.

Backlog stays at the source: an instance that has no room left for what a row would send waits with that row.
"""

import math
from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.batches import Batches
from barograph.engines.sim.calibration import Calibration
from barograph.engines.sim.cpu import Appetite, Pace, ReceivedRate
from barograph.engines.sim.due import DueTimes
from barograph.engines.sim.grain import Ended, Tally
from barograph.engines.sim.layout import Floats, Ints, Layout, OperatorPart
from barograph.engines.sim.route import Route, Sent
from barograph.engines.sim.threads import SendingThreads

_ARRIVE, _DUE, _READ, _WORK = range(4)
_NOISE = 1 << 16
_MOST_UNREAD = 4_000_000  # moments of rows that are kept apart when a run ends


class _Place:
    """What one operator holds: rows before it, when each instance is free, and, of a source, how far it has read."""

    def __init__(self, n: int, now_s: float) -> None:
        self.rows: Floats = np.empty((4, 0))
        self.of: Ints = np.empty(0, dtype=np.intp)
        self.inbox: list[tuple[Floats, Ints]] = []
        self.free_s: Floats = np.full(n, now_s)
        self.read = np.zeros(n, dtype=np.int64)
        self.read_committed = np.zeros(n, dtype=np.int64)
        self.seen = np.zeros(n, dtype=np.int64)
        self.skipped = self.skipped_committed = 0
        self.sent = self.sent_committed = 0
        self.done = self.done_committed = 0
        self.given_up = 0

    def skip(self, due: Ints) -> None:
        """Rows that fell due up to here are never made."""
        self.read = self.read + due - self.seen
        self.skipped += int((due - self.seen).sum())
        self.seen = due

    def waiting(self) -> int:
        return self.of.size + sum(of.size for _, of in self.inbox)


class RowGrain:
    dense_traffic = True

    def __init__(
        self,
        layout: Layout,
        calibration: Calibration,
        until_s: float,
        seed: int,
        send_thread_s: float = 0.0,
        batches: Sequence[Batches | None] = (),
    ) -> None:
        self._threads = SendingThreads(layout.workers, send_thread_s) if send_thread_s else None
        self._left_worker = np.zeros(layout.workers)
        self._batches = batches or [None] * len(layout.topologies)
        self._calibration = calibration
        self._until_s = until_s
        self._seed = seed
        self._noise = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 2 * _NOISE)
        self._at = seed & 0xFFFF
        self._places = [_Place(o.n, 0.0) for o in layout.operators]
        self._due: dict[int, DueTimes] = {}
        self._n_of = [o.n for o in layout.operators]
        self._routes: list[Route] = []
        self._completed = np.zeros(len(layout.topologies))
        self._ended: list[list[Floats]] = [[] for _ in layout.topologies]  # (from due, from read) of rows that ended
        self.arrange(layout, 0.0)

    def arrange(self, layout: Layout, now_s: float) -> None:
        self._layout = layout
        n = len(layout.instances)
        hops = self._calibration.hops
        old_routes = {r.edge.index: r for r in self._routes}
        self._routes = [Route(layout, e, hops, self._seed, old_routes.get(e.index)) for e in layout.edges]
        self._send_s = np.zeros(n)
        self._unit_s = np.zeros(n)
        for o, part in enumerate(layout.operators):
            self._unit_s[part.span] += part.work.cost_s
            if part.n != self._n_of[o]:
                self._places[o] = self._resized(self._places[o], part.n, now_s)
                self._n_of[o] = part.n
            if part.work.load is not None and o not in self._due:
                self._due[o] = DueTimes(part.work.load, part.work.fractions(part.n), self._until_s)
        for route in self._routes:
            source, target = layout.operators[route.edge.source], layout.operators[route.edge.target]
            self._send_s[source.span] += route.send_s
            self._unit_s[target.span] += route.receive_s
        self._unit_s += self._send_s
        self._waiting = np.zeros(n)
        self._appetite, self._received = Appetite(n), ReceivedRate(n, self._calibration.in_flight_s)
        for o, part in enumerate(layout.operators):
            self._waiting[part.span] = np.bincount(self._places[o].of, minlength=part.n)

    @staticmethod
    def _resized(old: _Place, n: int, now_s: float) -> _Place:
        fresh = _Place(n, now_s)
        fresh.sent, fresh.sent_committed = old.sent, old.sent_committed
        fresh.done, fresh.done_committed = old.done, old.done_committed
        fresh.given_up = old.given_up
        return fresh

    def step(
        self,
        from_s: float,
        to_s: float,
        pace: Pace,
        reading: list[bool],
        running: list[bool],
        tally: Tally,
    ) -> Floats:
        layout, dt = self._layout, to_s - from_s
        rate = pace.speed * layout.clock
        served = rate / self._unit_s  # rows a second each could do
        executed, spent_s = tally.executed.copy(), tally.busy_s + tally.blocked_s
        takes = self._received.of(served)
        hold = np.maximum(self._calibration.in_flight_min_rows, self._calibration.in_flight_s * takes)
        room = hold - self._waiting + takes * dt
        arrived = np.zeros(len(layout.instances))
        self._completed = np.zeros(len(layout.topologies))
        self._left_worker = np.zeros(layout.workers)
        passed = np.full(arrived.size, np.inf)
        for o in layout.order:
            part, place = layout.operators[o], self._places[o]
            if part.is_source:
                due = self._due[o].rows_due(to_s)
                if part.work.live and not reading[part.topology]:
                    place.skip(due)
                arrived[part.span] = due - place.seen
                place.seen = due
            if not running[part.topology]:
                continue
            if not part.is_source:
                rows, of = self._queue(place)
            elif reading[part.topology]:
                rows, of = self._fresh(part, place, served[part.span] * dt)
            else:
                rows, of = np.empty((4, 0)), np.empty(0, dtype=np.intp)
            self._serve(part, place, rows, of, (from_s, to_s), pace, rate, room, arrived, passed, tally)
        tally.arrived += arrived
        self._appetite.saw(arrived, passed, dt)
        self._received.saw(tally.executed - executed, tally.busy_s + tally.blocked_s - spent_s)
        if self._threads is not None:
            self._threads.sent(self._left_worker, dt)
        for o, part in enumerate(layout.operators):
            place = self._places[o]
            if part.is_source:
                self._waiting[part.span] = place.seen - place.read
            else:
                count = np.bincount(place.of, minlength=part.n)
                for _, of in place.inbox:
                    count = count + np.bincount(of, minlength=part.n)
                self._waiting[part.span] = count
        return self._completed

    def deliver(self, tally: Tally) -> None:
        """Every step has."""

    def flush(self, ended: Ended) -> None:
        for t, found in enumerate(self._ended):
            if found:
                times = np.concatenate(found, axis=1)
                ended.due[t].add(times[0])
                ended.read[t].add(times[1])
                found.clear()

    def _fresh(self, part: OperatorPart, place: _Place, able: Floats) -> tuple[Floats, Ints]:
        """Rows a source has due and could read in this step, and a few more."""
        count = np.minimum(place.seen - place.read, np.ceil(able * 1.2).astype(np.int64) + 2)
        of = np.repeat(np.arange(part.n), count)
        first = np.cumsum(count) - count
        k = np.arange(of.size) - first[of] + place.read[of]
        rows = np.empty((4, of.size))
        rows[_DUE] = self._due[part.index].due_s(of, k)
        rows[_ARRIVE] = rows[_DUE]
        rows[_WORK] = self._work(part, of.size)
        return rows, of

    @staticmethod
    def _queue(place: _Place) -> tuple[Floats, Ints]:
        """All rows before an operator, by instance, then by arrival."""
        if not place.inbox:
            return place.rows, place.of
        rows = np.concatenate([place.rows, *(r for r, _ in place.inbox)], axis=1)
        of = np.concatenate([place.of, *(i for _, i in place.inbox)])
        place.inbox = []
        # senders' rows come in order of time already: by instance first (cheap on small numbers), and what is left to
        # sort are a few ordered runs
        arrive = rows[_ARRIVE]
        by_instance = np.argsort(of.astype(np.uint16), kind="stable")
        key = (of * (arrive.max() + 1.0) + arrive).take(by_instance)
        order = by_instance.take(np.argsort(key, kind="stable"))
        return rows.take(order, axis=1), of.take(order)

    def _work(self, part: OperatorPart, n: int) -> Floats:
        """CPU seconds of n rows: uniform about the mean with the given spread, from a long table of random numbers."""
        if part.work.spread == 0.0:
            return np.full(n, part.work.cost_s)
        self._at = (self._at * 25173 + 13849) & 0xFFFF
        noise = self._noise[self._at : self._at + n] if n <= _NOISE else np.resize(self._noise, n)
        found: Floats = part.work.cost_s * (1.0 + np.sqrt(3.0) * part.work.spread * noise)
        return found

    def _serve(
        self,
        part: OperatorPart,
        place: _Place,
        rows: Floats,
        of: Ints,
        span_s: tuple[float, float],
        pace: Pace,
        rate: Floats,
        room: Floats,
        arrived: Floats,
        through: Floats,
        tally: Tally,
    ) -> None:
        from_s, to_s = span_s
        speed = pace.speed
        free_before = place.free_s
        if of.size == 0:
            busy = np.minimum(np.maximum(free_before - from_s, 0.0), to_s - from_s)
            if busy.any():
                tally.busy_s[part.span] += busy
                tally.cpu_s[part.span] += busy * speed[part.span]
            if not part.is_source:
                place.rows, place.of = rows, of
            return
        service = (rows[_WORK] + self._send_s[part.span][of]) / rate[part.span][of]
        awake = rows[_ARRIVE] if pace.wait_s is None else rows[_ARRIVE] + pace.wait_s[part.span][of]
        begin = np.maximum(awake, np.maximum(free_before, from_s)[of]) - from_s
        total = np.cumsum(service)
        before = total - service
        apart = of * (total[-1] + begin.max() - begin.min() + 1.0)
        start = np.maximum.accumulate(begin - before + apart) - apart + before
        ready = np.flatnonzero(start < to_s - from_s)
        if part.is_source:
            rows[_READ] = start + from_s
        finish = start.take(ready) + service.take(ready) + from_s
        of_done = of.take(ready)
        passed = rows[_DUE : _READ + 1].take(ready, axis=1)
        sent = [self._routes[e].send(of_done, room) for e in part.outputs]
        blocked_s = np.zeros(part.n)
        came = rows[_ARRIVE].take(ready)
        limit = _limit(sent, came, of_done, part.n) if any(s.over for s in sent) else None
        if limit is not None:
            position = np.arange(ready.size) - _first(of_done, part.n)[of_done]
            keep = position < limit[of_done]
            stopped = np.bincount(of_done, minlength=part.n) > limit
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
        if limit is not None:
            through[part.span] = np.where(stopped, count, np.inf)
            blocked_s = np.where(stopped, np.maximum(to_s - np.maximum(free_after, from_s), 0.0), 0.0)
        busy = np.clip(busy, 0.0, to_s - from_s)
        place.free_s = free_after
        place.done += of_done.size
        tally.executed[part.span] += count
        tally.busy_s[part.span] += busy
        tally.cpu_s[part.span] += busy * speed[part.span]
        tally.blocked_s[part.span] += blocked_s
        for s in sent:
            self._pass_on(s, count, finish, passed, part, room, arrived, tally)
        if part.is_sink:
            self._completed[part.topology] += of_done.size
            self._ended[part.topology].append(finish - passed)
            if (batches := self._batches[part.topology]) is not None:
                batches.ended(passed[0], finish)
        if part.is_source:
            place.read = place.read + count
        else:
            waits = np.ones(of.size, dtype=np.bool_)
            waits[ready] = False
            left = np.flatnonzero(waits)
            place.rows, place.of = rows.take(left, axis=1), of.take(left)

    def _pass_on(
        self,
        sent: Sent,
        executed: Ints,
        finish: Floats,
        passed: Floats,
        part: OperatorPart,
        room: Floats,
        arrived: Floats,
        tally: Tally,
    ) -> None:
        route = sent.route
        target = self._layout.operators[route.edge.target]
        place = self._places[route.edge.target]
        route.settle(sent, executed)
        n = sent.target.size
        tally.traffic[route.edge.index] += sent.counts
        tally.emitted[part.span] += sent.counts.sum(axis=1)
        got = sent.counts.sum(axis=0)
        arrived[target.span] += got
        room[target.span] -= got
        place.sent += n
        if n == 0:
            return
        rows = np.empty((4, n))
        rows[_ARRIVE] = (finish if sent.row is None else finish[sent.row]) + self._way_s(route, sent)[sent.pair]
        rows[_DUE : _READ + 1] = passed if sent.row is None else passed.take(sent.row, axis=1)
        rows[_WORK] = self._work(target, n) + route.receive_pair_s[sent.pair]
        place.inbox.append((rows, sent.target))

    def _way_s(self, route: Route, sent: Sent) -> Floats:
        """How long a row takes between each pair, with its wait for the thread that sends for the worker it leaves."""
        if self._threads is None:
            return route.delay_s
        np.add.at(self._left_worker, route.worker, (sent.counts * route.leaves).sum(axis=1))
        wait_s = route.leaves * self._threads.wait_s[route.worker][:, None]
        found: Floats = route.delay_s + wait_s.ravel()
        return found

    def wanted(self, dt_s: float) -> Floats:
        return self._appetite.cores(self._waiting, self._unit_s / self._layout.clock, dt_s)

    def quiet_until(self, now_s: float) -> float:
        if self._waiting.any() or any(float(p.free_s.max()) > now_s for p in self._places):
            return now_s
        return min((due.next_s(self._places[o].seen) for o, due in self._due.items()), default=np.inf)

    def pending(self, now_s: float) -> Floats:  # noqa: ARG002
        return self._waiting.copy()

    def _parts(self, topology: int) -> Sequence[OperatorPart]:
        return [p for p in self._layout.operators if p.topology == topology]

    def drained(self, topology: int, now_s: float) -> float | None:
        parts = self._parts(topology)
        if any(not p.is_source and self._places[p.index].waiting() for p in parts):
            return None
        last = max(float(self._places[p.index].free_s.max()) for p in parts)
        return last if last <= now_s else None

    def commit(self, topology: int) -> None:
        for part in self._parts(topology):
            place = self._places[part.index]
            place.read_committed = place.read.copy()
            place.sent_committed, place.done_committed = place.sent, place.done
            place.skipped_committed = place.skipped
            for e in part.outputs:
                self._routes[e].commit()

    def fail(self, topology: int, now_s: float) -> None:
        for part in self._parts(topology):
            place = self._places[part.index]
            place.rows, place.of, place.inbox = np.empty((4, 0)), np.empty(0, dtype=np.intp), []
            place.free_s = np.full(part.n, now_s)
            place.read = place.read_committed.copy()
            place.sent, place.done = place.sent_committed, place.done_committed
            place.skipped = place.skipped_committed
            for e in part.outputs:
                self._routes[e].fail()
            self._waiting[part.span] = place.seen - place.read if part.is_source else 0.0

    def abandon(self, topology: int, now_s: float) -> float:
        failed = 0.0
        for part in self._parts(topology):
            place = self._places[part.index]
            if part.is_source:
                place.seen = self._due[part.index].rows_due(now_s)
                rows = int((place.seen - place.read).sum())
                place.read = place.seen.copy()
            else:
                rows = place.waiting()
                place.rows, place.of, place.inbox = np.empty((4, 0)), np.empty(0, dtype=np.intp), []
            place.given_up += rows
            failed += rows * self._layout.gain[part.index]
            self._waiting[part.span] = 0.0
        return failed

    def read_rows(self) -> Floats:
        sources = [o.is_source for o in self._layout.operators]
        read = [float(p.read.sum() - p.given_up) if s else 0.0 for p, s in zip(self._places, sources, strict=True)]
        return np.array(read)

    def unfinished(self, topology: int, now_s: float) -> tuple[Floats, Floats]:
        ages, weights = [np.empty(0)], [np.empty(0)]
        for part in self._parts(topology):
            place, gain = self._places[part.index], self._layout.gain[part.index]
            if part.is_source:
                due, rows = self._unread(part, place)
            else:
                due = self._queue(place)[0][_DUE] if place.inbox else place.rows[_DUE]
                rows = np.ones(due.size)
            ages.append(np.maximum(now_s - due, 0.0))
            weights.append(gain * rows)
        return np.concatenate(ages), np.concatenate(weights)

    def _unread(self, part: OperatorPart, place: _Place) -> tuple[Floats, Floats]:
        """When the rows that a source has not read fell due. A huge backlog is told in groups of consecutive rows, each
        by the moment of its middle row and how many rows it has."""
        count = place.seen - place.read
        together = max(1, math.ceil(count.sum() / _MOST_UNREAD))
        groups = -(-count // together)
        of = np.repeat(np.arange(part.n), groups)
        first = (np.arange(of.size) - (np.cumsum(groups) - groups)[of]) * together
        rows = np.minimum(together, count[of] - first)
        return self._due[part.index].due_s(of, place.read[of] + first + (rows - 1) / 2), rows

    def unaccounted(self, now_s: float) -> float:
        missing = 0
        for part in self._layout.operators:
            place = self._places[part.index]
            if part.is_source:
                due = self._due[part.index].rows_due(now_s)
                ended = place.done + place.given_up + place.skipped
                missing += int(np.abs(due - place.seen).sum()) + abs(ended - int(place.read.sum()))
            else:
                missing += abs(place.sent - place.done - place.given_up - place.waiting())
        return float(missing)


def _first(of: Ints, n: int) -> Ints:
    count = np.bincount(of, minlength=n)
    found: Ints = np.cumsum(count) - count
    return found


def _limit(sent: list[Sent], came: Floats, of: Ints, n: int) -> Ints:
    """How many rows each instance can end before it has to wait for room: who came first is served first."""
    position = np.arange(of.size) - _first(of, n)[of]
    limit = np.full(n, np.iinfo(np.intp).max, dtype=np.intp)
    for s in sent:
        stuck = s.stuck(came)
        if stuck.size:
            np.minimum.at(limit, of[stuck], position[stuck])
    return limit
