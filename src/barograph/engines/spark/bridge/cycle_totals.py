"""Totals of one cycle: what instances, nodes and topologies did since the last ``take``, summed from the reports.

It measures nothing and decides nothing. Only instances that exist now are included: what an instance did that a
rescale has removed since is in no later cycle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.engines.latency import Histogram
from barograph.engines.spark.bridge.reports import TelemetryReport
from barograph.model import EdgeTraffic, Instance, InstanceMetrics, Metrics, NodeMetrics, Topology, TopologyMetrics

_S = 1e-9


@dataclass(slots=True)
class _InstanceTotals:
    """One instance. read_only: its source does not know which rows are due, so rows that were read count as arrived."""

    arrived: int = 0
    executed: int = 0
    emitted: int = 0
    pending: int = 0
    cpu_ns: int = 0
    busy_ns: int = 0
    idle_ns: int = 0
    blocked_ns: int = 0
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class CycleMetrics:
    """The metrics of a snapshot, over the time since the previous one."""

    metrics: Metrics
    traffic: tuple[EdgeTraffic, ...]
    nodes: tuple[NodeMetrics, ...]
    topologies: tuple[TopologyMetrics, ...]


NO_CYCLE_METRICS = CycleMetrics(Metrics(()), (), (), ())


class CycleTotals:
    """Sums up what the plug-in reports until ``take`` hands it over and starts again from zero."""

    def __init__(self) -> None:
        self._sums: dict[Instance, _InstanceTotals] = {}
        self._sent: dict[tuple[Instance, str], dict[int, int]] = {}
        self._latency: dict[tuple[Instance, str], Histogram] = {}
        self._whole: dict[tuple[str, str], Histogram] = {}
        self._cpu_ns: dict[str, int] = {}
        self._resident_bytes: dict[str, int] = {}

    def add(self, report: TelemetryReport) -> None:
        for m in report.meters:
            total = self._sums.setdefault(Instance(m.topology, m.operator, m.index), _InstanceTotals())
            total.arrived += m.arrived
            total.executed += m.executed
            total.emitted += m.emitted
            total.pending = m.pending
            total.cpu_ns += m.cpu_ns
            total.busy_ns += m.busy_ns
            total.idle_ns += m.idle_ns
            total.blocked_ns += m.blocked_ns
            total.read_only = not m.arrived_known
        for s in report.traffic:
            to = self._sent.setdefault((Instance(s.topology, s.source, s.sender), s.target), {})
            to[s.receiver] = to.get(s.receiver, 0) + s.rows
        for h in report.latencies:
            key = (Instance(h.topology, h.operator, h.index), h.clock)
            self._latency[key] = self._latency.get(key, Histogram()) + h.histogram
            whole = (h.topology, h.clock)
            self._whole[whole] = self._whole.get(whole, Histogram()) + h.histogram
        for p in report.processes:
            self._cpu_ns[p.executor] = self._cpu_ns.get(p.executor, 0) + p.cpu_ns
            self._resident_bytes[p.executor] = p.resident_bytes

    def latency(self, topology: str, clock: str) -> Histogram:
        """Of every row that has left the topology; ``take`` does not reset it. clock: due or read."""
        return self._whole.get((topology, clock), Histogram())

    def take(
        self,
        topologies: Iterable[Topology],
        epochs: Mapping[str, int],
        node_of: Mapping[str, str],
        timeout_s: float,
    ) -> CycleMetrics:
        """Everything since the last call. node_of: executor -> node."""
        listed = [t for t in topologies if t.name in epochs]
        traffic = tuple(edge for t in listed for edge in self._traffic(t))
        cycle = CycleMetrics(
            self._metrics(listed, traffic),
            traffic,
            self._nodes(node_of),
            tuple(self._topology(t, epochs[t.name], timeout_s) for t in listed),
        )
        self._sums.clear()
        self._sent.clear()
        self._latency.clear()
        self._cpu_ns.clear()
        self._resident_bytes = {e: n for e, n in self._resident_bytes.items() if e in node_of}
        return cycle

    def _traffic(self, topology: Topology) -> Iterable[EdgeTraffic]:
        for edge in topology.edges:
            senders = topology.operator(edge.source).parallelism
            receivers = topology.operator(edge.target).parallelism
            rows: NDArray[np.float64] = np.zeros((senders, receivers))
            for i in range(senders):
                sent = self._sent.get((Instance(topology.name, edge.source, i), edge.target), {})
                for j, n in sent.items():
                    if j < receivers:
                        rows[i, j] = n
            yield EdgeTraffic(topology.name, edge.source, edge.target, rows)

    def _metrics(self, topologies: Iterable[Topology], traffic: Iterable[EdgeTraffic]) -> Metrics:
        received: dict[Instance, float] = {}
        for edge in traffic:
            for j, n in enumerate(edge.rows.sum(axis=0).tolist()):
                to = Instance(edge.topology, edge.target, j)
                received[to] = received.get(to, 0.0) + n
        return Metrics.of(
            {
                i: self._row(i, topology.operator(i.operator).source, received.get(i, 0.0))
                for topology in topologies
                for i in topology.instances()
            }
        )

    def _row(self, instance: Instance, source: bool, received: float) -> InstanceMetrics:
        total = self._sums.get(instance, _InstanceTotals())
        # Two reports may disagree on a wait of some milliseconds; the next one corrects it. So sums may be below 0.
        return InstanceMetrics(
            arrived=total.arrived if source else received,
            executed=total.executed,
            emitted=total.emitted,
            pending=total.pending,
            cpu_s=max(0, total.cpu_ns) * _S,
            busy_s=max(0, total.busy_ns) * _S,
            idle_s=max(0, total.idle_ns) * _S,
            blocked_s=max(0, total.blocked_ns) * _S,
        )

    def _nodes(self, node_of: Mapping[str, str]) -> tuple[NodeMetrics, ...]:
        found = []
        for node in sorted(set(node_of.values())):
            executors = [e for e, n in node_of.items() if n == node]
            found.append(
                NodeMetrics(
                    node,
                    sum(self._cpu_ns.get(e, 0) for e in executors) * _S,
                    sum(self._resident_bytes.get(e, 0) for e in executors) / 2**20,
                )
            )
        return tuple(found)

    def _topology(self, topology: Topology, epoch: int, timeout_s: float) -> TopologyMetrics:
        feeding = {e.source for e in topology.edges}
        sinks = [i for i in topology.instances() if i.operator not in feeding]
        sources = [
            self._sums.get(i, _InstanceTotals()) for i in topology.instances() if topology.operator(i.operator).source
        ]
        due = sum((self._latency.get((i, "due"), Histogram()) for i in sinks), Histogram())
        read = sum((self._latency.get((i, "read"), Histogram()) for i in sinks), Histogram())
        return TopologyMetrics(
            topology.name,
            epoch,
            completed_rows=sum(self._sums.get(i, _InstanceTotals()).emitted for i in sinks),
            late_rows=due.above(timeout_s * 1000),
            backlog_rows=sum(s.pending for s in sources),
            backlog_known=not any(s.read_only for s in sources),
            latency_due=due.latency(),
            latency_read=read.latency(),
        )
