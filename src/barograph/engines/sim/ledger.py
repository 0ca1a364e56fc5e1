"""What a run comes to: sums over the whole of it. Rows of an epoch count when the epoch is committed."""

from collections import defaultdict

import numpy as np

from barograph.engines.sim.grain import Ended
from barograph.engines.sim.latency import Times
from barograph.engines.sim.layout import Floats
from barograph.engines.sim.life import Life, Phase


class Ledger:
    """open: complete times since each topology's last commit; total: those before."""

    def __init__(self, topologies: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.open = Ended.empty(topologies, timeout_s)
        self.total = Ended.empty(topologies, timeout_s)
        self.replayed_rows = [0.0] * topologies
        self.stopped_s = [0.0] * topologies
        self.stalls = [0] * topologies
        self.completed_by_second: list[dict[int, float]] = [defaultdict(float) for _ in range(topologies)]
        self.moves = 0
        self.reconfigurations = 0
        self.decisions = 0
        self.refused = 0
        self.cpu_allotted_s = 0.0
        self.cpu_used_s = 0.0
        self.node_s = 0.0
        self.nodes_max = 0
        self._settled_s = 0.0
        self._cores = 0.0
        self._nodes = 0

    def settle(self, now_s: float, cores: float, nodes: int) -> None:
        """From now on so many cores are allotted on so many nodes."""
        passed_s = now_s - self._settled_s
        self.cpu_allotted_s += self._cores * passed_s
        self.node_s += self._nodes * passed_s
        if passed_s > 0:
            self.nodes_max = max(self.nodes_max, self._nodes)
        self._settled_s, self._cores, self._nodes = now_s, cores, nodes

    def passed(self, from_s: float, to_s: float, completed: Floats, lives: list[Life]) -> None:
        second = int(from_s + 1e-9)
        for t in np.flatnonzero(completed).tolist():
            self.completed_by_second[t][second] += float(completed[t])
        for t, life in enumerate(lives):
            if life.phase in (Phase.STOPPED, Phase.STALLED):
                self.stopped_s[t] += to_s - from_s

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
