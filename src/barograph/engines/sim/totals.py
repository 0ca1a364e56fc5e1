"""Sums over a whole run. Rows of an epoch count when the epoch is committed."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from barograph.engines.degraded import Span
from barograph.engines.sim.grains.complete_times import CompleteTimes
from barograph.engines.sim.grains.grain import Ended
from barograph.engines.sim.result import CycleResult, cycle_result
from barograph.engines.sim.world.layout import Floats, WorldLayout
from barograph.engines.sim.world.topology_state import TopologyPhase, TopologyState
from barograph.model import Snapshot


@dataclass(frozen=True, slots=True)
class ResourcesInUse:
    """What the topologies use from some moment on: guaranteed CPU, the most CPU they may use, declared memory."""

    reserved_cores: float = 0.0
    limit_cores: float = 0.0
    memory_mb: float = 0.0
    nodes: int = 0
    workers: int = 0


class RunTotals:
    """open: complete times since each topology's last commit; total: those before.

    output_by_second: rows at the sinks, each once: rows that are replayed after a loss are not counted again.
    stops: when a topology did not run, because it drained, stood still, or had no seats.
    """

    def __init__(self, topologies: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.open = Ended.empty(topologies, timeout_s)
        self.total = Ended.empty(topologies, timeout_s)
        self.replayed_rows = [0.0] * topologies
        self.failed_rows = [0.0] * topologies
        self.stopped_s = [0.0] * topologies
        self.starved_s = [0.0] * topologies
        self.output_by_second: list[dict[int, float]] = [defaultdict(float) for _ in range(topologies)]
        self.stops: list[list[Span]] = [[] for _ in range(topologies)]
        self._repeated = [0.0] * topologies
        self.moves = 0
        self.reconfigurations = 0
        self.decisions = 0
        self.refused = 0
        self.cpu_reserved_s = 0.0
        self.cpu_limit_s = 0.0
        self.cpu_used_s = 0.0
        self.memory_mb_s = 0.0
        self.node_s = 0.0
        self.nodes_min: int | None = None
        self.nodes_max = 0
        self.worker_s = 0.0
        self.workers_max = 0
        self.sent_rows = 0.0
        self.between_workers_rows = 0.0
        self.between_nodes_rows = 0.0
        self.over_time: list[CycleResult] = []
        self._between_nodes_before = 0.0
        self._settled_s = 0.0
        self._held = ResourcesInUse()

    def settle(self, now_s: float, held: ResourcesInUse) -> None:
        """From now on this much is in use."""
        passed_s, before = now_s - self._settled_s, self._held
        self.cpu_reserved_s += before.reserved_cores * passed_s
        self.cpu_limit_s += before.limit_cores * passed_s
        self.memory_mb_s += before.memory_mb * passed_s
        self.node_s += before.nodes * passed_s
        self.worker_s += before.workers * passed_s
        if passed_s > 0:
            self.nodes_min = before.nodes if self.nodes_min is None else min(self.nodes_min, before.nodes)
            self.nodes_max = max(self.nodes_max, before.nodes)
            self.workers_max = max(self.workers_max, before.workers)
        self._settled_s, self._held = now_s, held

    def saw(self, seen: Snapshot) -> None:
        """A cycle is over."""
        self.over_time.append(cycle_result(seen, self.between_nodes_rows - self._between_nodes_before))
        self._between_nodes_before = self.between_nodes_rows

    def sent(self, layout: WorldLayout, traffic: list[Floats]) -> None:
        """Rows that went between instances while this layout held; traffic as in a CycleCounts."""
        for edge in layout.edges:
            rows = traffic[edge.index]
            total = float(rows.sum())
            if total == 0.0:
                continue
            far, other = layout.crossing(edge, rows)
            self.sent_rows += total
            self.between_nodes_rows += far
            self.between_workers_rows += other

    def passed(
        self, from_s: float, to_s: float, completed: Floats, states: list[TopologyState], rests: list[bool]
    ) -> None:
        """rests: of each topology, whether it has no node."""
        seconds = _by_second(from_s, to_s)
        for t in np.flatnonzero(completed).tolist():
            again = min(self._repeated[t], float(completed[t]))
            self._repeated[t] -= again
            for second, part in seconds:
                self.output_by_second[t][second] += part * (float(completed[t]) - again)
        for t, state in enumerate(states):
            if state.phase in (TopologyPhase.STOPPED, TopologyPhase.STALLED, TopologyPhase.HELD):
                self.stopped_s[t] += to_s - from_s
            if rests[t]:
                self.starved_s[t] += to_s - from_s
            if state.phase is not TopologyPhase.RUNNING:
                self._stopped(self.stops[t], from_s, to_s)

    @staticmethod
    def _stopped(stops: list[Span], from_s: float, to_s: float) -> None:
        """One stop is one span, however many steps of time it takes."""
        if stops and stops[-1][1] >= from_s - 1e-9:
            from_s = stops.pop()[0]
        stops.append((from_s, to_s))

    def committed(self, t: int) -> None:
        for opened, total in ((self.open.due, self.total.due), (self.open.read, self.total.read)):
            total[t].merge(opened[t])
            opened[t] = CompleteTimes(self._timeout_s)

    def failed(self, t: int) -> None:
        """The epoch's rows will be replayed: they count only then."""
        self.replayed_rows[t] += self.open.due[t].count
        self._repeated[t] += self.open.due[t].count
        self.open.due[t] = CompleteTimes(self._timeout_s)
        self.open.read[t] = CompleteTimes(self._timeout_s)

    def times(self, t: int) -> tuple[CompleteTimes, CompleteTimes]:
        """Complete times of every row that ended, from due and from read, each row once."""
        due, read = CompleteTimes(self._timeout_s), CompleteTimes(self._timeout_s)
        for into, parts in (
            (due, (self.total.due[t], self.open.due[t])),
            (read, (self.total.read[t], self.open.read[t])),
        ):
            for part in parts:
                into.merge(part)
        return due, read


def _by_second(from_s: float, to_s: float) -> list[tuple[int, float]]:
    """The seconds that a step of time touches, and the part of the step in each."""
    first, last = int(from_s + 1e-9), int(to_s - 1e-9)
    if first == last:
        return [(first, 1.0)]
    return [(s, (min(to_s, s + 1.0) - max(from_s, s)) / (to_s - from_s)) for s in range(first, last + 1)]
