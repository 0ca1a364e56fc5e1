"""What a run comes to: sums over the whole of it. Rows of an epoch count when the epoch is committed."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from barograph.engines.sim.grain import Ended
from barograph.engines.sim.latency import Times
from barograph.engines.sim.layout import Floats, Layout
from barograph.engines.sim.life import Life, Phase


@dataclass(frozen=True, slots=True)
class Held:
    """What the topologies hold from some moment on: guaranteed CPU, the most they may use, declared memory."""

    reserved_cores: float = 0.0
    limit_cores: float = 0.0
    memory_mb: float = 0.0
    nodes: int = 0
    workers: int = 0


class Ledger:
    """open: complete times since each topology's last commit; total: those before."""

    def __init__(self, topologies: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.open = Ended.empty(topologies, timeout_s)
        self.total = Ended.empty(topologies, timeout_s)
        self.replayed_rows = [0.0] * topologies
        self.stopped_s = [0.0] * topologies
        self.starved_s = [0.0] * topologies
        self.stalls = [0] * topologies
        self.completed_by_second: list[dict[int, float]] = [defaultdict(float) for _ in range(topologies)]
        self.moves = 0
        self.reconfigurations = 0
        self.decisions = 0
        self.refused = 0
        self.cpu_reserved_s = 0.0
        self.cpu_limit_s = 0.0
        self.cpu_used_s = 0.0
        self.memory_mb_s = 0.0
        self.node_s = 0.0
        self.nodes_max = 0
        self.worker_s = 0.0
        self.workers_max = 0
        self.sent_rows = 0.0
        self.between_workers_rows = 0.0
        self.between_nodes_rows = 0.0
        self._settled_s = 0.0
        self._held = Held()

    def settle(self, now_s: float, held: Held) -> None:
        """From now on this is held."""
        passed_s, before = now_s - self._settled_s, self._held
        self.cpu_reserved_s += before.reserved_cores * passed_s
        self.cpu_limit_s += before.limit_cores * passed_s
        self.memory_mb_s += before.memory_mb * passed_s
        self.node_s += before.nodes * passed_s
        self.worker_s += before.workers * passed_s
        if passed_s > 0:
            self.nodes_max = max(self.nodes_max, before.nodes)
            self.workers_max = max(self.workers_max, before.workers)
        self._settled_s, self._held = now_s, held

    def sent(self, layout: Layout, traffic: list[Floats]) -> None:
        """Rows that went between instances while this layout held; traffic as in a Tally."""
        for edge in layout.edges:
            rows = traffic[edge.index]
            total = float(rows.sum())
            if total == 0.0:
                continue
            far, other = layout.crossing(edge, rows)
            self.sent_rows += total
            self.between_nodes_rows += far
            self.between_workers_rows += other

    def passed(self, from_s: float, to_s: float, completed: Floats, lives: list[Life], rests: list[bool]) -> None:
        """rests: whether no node is given to each topology."""
        second = int(from_s + 1e-9)
        for t in np.flatnonzero(completed).tolist():
            self.completed_by_second[t][second] += float(completed[t])
        for t, life in enumerate(lives):
            if life.phase in (Phase.STOPPED, Phase.STALLED, Phase.HELD):
                self.stopped_s[t] += to_s - from_s
            if rests[t]:
                self.starved_s[t] += to_s - from_s

    def committed(self, t: int) -> None:
        for opened, total in ((self.open.due, self.total.due), (self.open.read, self.total.read)):
            total[t].merge(opened[t])
            opened[t] = Times(self._timeout_s)

    def failed(self, t: int) -> None:
        """The epoch's rows will come again: only then do they count."""
        self.replayed_rows[t] += self.open.due[t].count
        self.open.due[t] = Times(self._timeout_s)
        self.open.read[t] = Times(self._timeout_s)

    def times(self, t: int) -> tuple[Times, Times]:
        """Complete times of every row that ended, from due and from read, each row once."""
        due, read = Times(self._timeout_s), Times(self._timeout_s)
        for into, parts in (
            (due, (self.total.due[t], self.open.due[t])),
            (read, (self.total.read[t], self.open.read[t])),
        ):
            for part in parts:
                into.merge(part)
        return due, read
