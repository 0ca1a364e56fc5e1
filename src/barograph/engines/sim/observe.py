"""The state of the simulated engine as a Snapshot, in the same units and by the same rules as on Spark."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from barograph.engines.sim.grains.grain import CycleCounts, Ended
from barograph.engines.sim.world.layout import Floats
from barograph.model import EdgeTraffic, Metrics, NodeMetrics, Snapshot, TopologyMetrics

if TYPE_CHECKING:  # the engine passes itself
    from barograph.engines.sim.engine import Simulator


def snapshot(engine: "Simulator", counts: CycleCounts, ended: Ended, elapsed_s: float) -> Snapshot:
    """What was counted in the last ``elapsed_s`` seconds."""
    layout = engine.layout
    pending = engine.grain.pending(engine.now_s)
    idle_s = np.maximum(0.0, elapsed_s - counts.busy_s - counts.blocked_s)
    metrics = Metrics(
        layout.instances,
        {
            "arrived": counts.arrived,
            "executed": counts.executed,
            "emitted": counts.emitted,
            "pending": pending,
            "cpu_s": counts.cpu_s,
            "busy_s": counts.busy_s,
            "idle_s": idle_s,
            "blocked_s": counts.blocked_s,
        },
    )
    alive = {s.node for s in engine.workers}
    nodes = tuple(n for n in engine.scenario.nodes if n.name in alive)
    placed = layout.node_of >= 0
    used = np.bincount(layout.node_of[placed], weights=counts.cpu_s[placed], minlength=len(engine.scenario.nodes))
    return Snapshot(
        at_s=engine.now_s,
        cycle_s=elapsed_s if elapsed_s > 0 else engine.scenario.cycle_s,
        nodes=nodes,
        topologies=tuple(engine.topologies),
        workers=tuple(engine.workers.values()),
        placement=engine.running(),
        metrics=metrics,
        traffic=_traffic(engine, counts),
        node_metrics=tuple(
            NodeMetrics(n.name, float(u)) for n, u in zip(engine.scenario.nodes, used, strict=True) if n.name in alive
        ),
        topology_metrics=_topology_metrics(engine, pending, ended),
        version=engine.version,
    )


def present(engine: "Simulator") -> Snapshot:
    """Only what a plan is checked against: no metrics."""
    alive = {s.node for s in engine.workers}
    return Snapshot(
        at_s=engine.now_s,
        cycle_s=engine.scenario.cycle_s,
        nodes=tuple(n for n in engine.scenario.nodes if n.name in alive),
        topologies=tuple(engine.topologies),
        workers=tuple(engine.workers.values()),
        placement=engine.running(),
        version=engine.version,
    )


def with_metrics_of(last: Snapshot, now: Snapshot) -> Snapshot:
    """The cluster of ``now`` with the metrics of ``last``; new values where an operator was rescaled since."""
    if now.metrics.instances != last.metrics.instances:
        return now
    return replace(
        now,
        cycle_s=last.cycle_s,
        metrics=last.metrics,
        traffic=last.traffic,
        node_metrics=last.node_metrics,
        topology_metrics=last.topology_metrics,
    )


def _traffic(engine: "Simulator", counts: CycleCounts) -> tuple[EdgeTraffic, ...]:
    layout = engine.layout
    found = []
    for edge in layout.edges:
        source, target = layout.operators[edge.source], layout.operators[edge.target]
        rows = counts.traffic[edge.index]
        if not engine.grain.dense_traffic:  # one row stands for all senders alike: a view, so that size costs nothing
            rows = np.broadcast_to(rows / source.n, (source.n, target.n))
        name = layout.topologies[source.topology].name
        found.append(EdgeTraffic(name, source.name, target.name, rows))
    return tuple(found)


def _topology_metrics(engine: "Simulator", pending: Floats, ended: Ended) -> tuple[TopologyMetrics, ...]:
    backlog = np.zeros(len(engine.topologies))
    for part in engine.layout.operators:
        if part.is_source:
            backlog[part.topology] += pending[part.span].sum()
    return tuple(
        TopologyMetrics(
            topology=topology.name,
            epoch=engine.states[t].epoch,
            completed_rows=ended.due[t].count,
            late_rows=ended.due[t].late,
            backlog_rows=float(backlog[t]),
            latency_due=ended.due[t].latency(),
            latency_read=ended.read[t].latency(),
        )
        for t, topology in enumerate(engine.topologies)
    )
