"""The state of the fine grain between two steps, and how ends of epochs and failures change it."""

from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.calibration import Hop
from barograph.engines.sim.grains.due import DueTimes
from barograph.engines.sim.grains.row_queue import RowQueue
from barograph.engines.sim.world.layout import Floats, OperatorPart, WorldLayout
from barograph.engines.sim.world.routes import Route


class RowState:
    """queues: of each operator. routes: of each edge. due: load of each source. waiting: rows before each instance.

    _unit_s: CPU seconds of a row, sending and receiving included; _send_s: the part of it for sending.
    """

    def __init__(self, layout: WorldLayout, hops: Sequence[Hop], until_s: float, seed: int) -> None:
        self._hops, self._until_s, self._seed = hops, until_s, seed
        self._queues = [RowQueue(o.n, 0.0) for o in layout.operators]
        self._due: dict[int, DueTimes] = {}
        self._routes: list[Route] = []
        self.arrange(layout, 0.0)

    def arrange(self, layout: WorldLayout, now_s: float) -> None:
        self._layout = layout
        n = len(layout.instances)
        old_routes = {r.edge.index: r for r in self._routes}
        self._routes = [Route(layout, e, self._hops, self._seed, old_routes.get(e.index)) for e in layout.edges]
        self._send_s = np.zeros(n)
        self._unit_s = np.zeros(n)
        for o, part in enumerate(layout.operators):
            self._unit_s[part.span] += part.work.cost_s
            if part.n != self._queues[o].free_s.size:
                self._queues[o] = self._queues[o].resized(part.n, now_s)
            if part.work.load is not None and o not in self._due:
                self._due[o] = DueTimes(part.work.load, part.work.fractions(part.n), self._until_s)
        for route in self._routes:
            source, target = layout.operators[route.edge.source], layout.operators[route.edge.target]
            self._send_s[source.span] += route.send_s
            self._unit_s[target.span] += route.receive_s
        self._unit_s += self._send_s
        self._waiting = np.zeros(n)
        for o, part in enumerate(layout.operators):
            self._waiting[part.span] = np.bincount(self._queues[o].of, minlength=part.n)

    def quiet_until(self, now_s: float) -> float:
        if self._waiting.any() or any(float(q.free_s.max()) > now_s for q in self._queues):
            return now_s
        return min((due.next_s(self._queues[o].seen) for o, due in self._due.items()), default=np.inf)

    def pending(self, now_s: float) -> Floats:  # noqa: ARG002
        return self._waiting.copy()

    def _parts(self, topology: int) -> list[tuple[OperatorPart, RowQueue]]:
        return [(p, self._queues[p.index]) for p in self._layout.operators if p.topology == topology]

    def drained(self, topology: int, now_s: float) -> float | None:
        parts = self._parts(topology)
        if any(not part.is_source and queue.waiting() for part, queue in parts):
            return None
        last = max(float(queue.free_s.max()) for _, queue in parts)
        return last if last <= now_s else None

    def commit(self, topology: int) -> None:
        for part, queue in self._parts(topology):
            queue.commit()
            for e in part.outputs:
                self._routes[e].commit()

    def fail(self, topology: int, now_s: float) -> None:
        for part, queue in self._parts(topology):
            queue.fail(now_s)
            for e in part.outputs:
                self._routes[e].fail()
            self._waiting[part.span] = queue.seen - queue.read if part.is_source else 0.0

    def abandon(self, topology: int, now_s: float) -> float:
        failed = 0.0
        for part, queue in self._parts(topology):
            rows = queue.abandon(self._due[part.index].rows_due(now_s) if part.is_source else None)
            failed += rows * self._layout.gain[part.index]
            self._waiting[part.span] = 0.0
        return failed

    def read_rows(self) -> Floats:
        sources = [o.is_source for o in self._layout.operators]
        read = [float(q.read.sum() - q.given_up) if s else 0.0 for q, s in zip(self._queues, sources, strict=True)]
        return np.array(read)

    def unfinished(self, topology: int, now_s: float) -> tuple[Floats, Floats]:
        ages, weights = [np.empty(0)], [np.empty(0)]
        for part, queue in self._parts(topology):
            if part.is_source:
                due, rows = queue.unread(self._due[part.index])
            else:
                due = queue.due_of_waiting()
                rows = np.ones(due.size)
            ages.append(np.maximum(now_s - due, 0.0))
            weights.append(self._layout.gain[part.index] * rows)
        return np.concatenate(ages), np.concatenate(weights)

    def unaccounted(self, now_s: float) -> float:
        missing = 0
        for part, queue in zip(self._layout.operators, self._queues, strict=True):
            missing += queue.missing(self._due[part.index].rows_due(now_s) if part.is_source else None)
        return float(missing)
