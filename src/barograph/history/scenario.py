"""A recorded history as a scenario of the simulator: its nodes, its topologies, what rows cost, and the load that came.

What fell due at each source in each cycle is the load; CPU per row, rows out per row and the keys' skew are the
recording's own means. A node that was away for some cycles is lost for as long. What cannot be known from outside
(the spread of a row's cost) is left out.

The simulator counts what a row costs on a core of 1,000 MHz, and so does its calibration, whatever the clock of the
machine it was measured on. So the clocks of a recording are taken relative to their mean, which becomes 1,000 MHz: a
row costs in the replay what it cost in the recording, and nodes of different clocks still differ as they did.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from barograph.config import default
from barograph.engines.sim.scenario.bounds import fitting
from barograph.engines.sim.scenario.definition import (
    Flow,
    LevelChange,
    Loss,
    Scenario,
    SimulatedTopology,
    Trigger,
    Work,
)
from barograph.model import Cycle, Load, Node, Snapshot, Topology
from barograph.model.checks import require

_LEAST_COST_S = 1e-7  # of a row, also where no CPU was measured
_SEATS = 16
_UNIT_MHZ = 1000.0  # of the simulator, on which a row costs what its scenario says
_STEPS = 2000  # most pieces of a load; in longer recordings several cycles are averaged


def scenario_of(
    cycles: Sequence[Cycle], name: str, epoch_s: float = default("epoch"), timeout_s: float = default("timeout")
) -> Scenario:
    """The recording as a scenario. Times start where it starts."""
    snapshots = [c.snapshot for c in _one_life(cycles)]
    require(len(snapshots) >= 2, f"the history {name} has fewer than two cycles: there is no load in it")
    start_s = snapshots[0].at_s - snapshots[0].cycle_s
    duration_s = snapshots[-1].at_s - start_s
    topologies = {t.name: t for s in reversed(snapshots) for t in s.topologies}
    found = Scenario(
        name=name,
        title=f"as recorded in {name}",
        nodes=_nodes(snapshots),
        workloads=tuple(_workload(t, snapshots, start_s) for t in topologies.values()),
        duration_s=duration_s,
        cycle_s=float(np.median([s.cycle_s for s in snapshots])),
        epoch_s=epoch_s,
        timeout_s=timeout_s,
        losses=_losses(snapshots, start_s),
    )
    return fitting(found)


def _one_life(cycles: Sequence[Cycle]) -> Sequence[Cycle]:
    """The longest stretch without a restart of the engine; after a restart its clock begins again at 0."""
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(cycles)) if b.snapshot.at_s <= a.snapshot.at_s]
    stretches = [cycles[a:b] for a, b in pairwise([0, *breaks, len(cycles)])]
    return max(stretches, key=len, default=())


def _nodes(snapshots: Sequence[Snapshot]) -> tuple[Node, ...]:
    nodes = {n.name: n for s in reversed(snapshots) for n in s.nodes}
    seats = {w.slot.node: w.seats for s in reversed(snapshots) for w in s.workers}
    mean_mhz = _mean_mhz(snapshots)
    return tuple(
        replace(n, seats=n.seats or seats.get(n.name, _SEATS), clock_mhz=_UNIT_MHZ * n.clock_mhz / mean_mhz)
        for _, n in sorted(nodes.items())
    )


def _mean_mhz(snapshots: Sequence[Snapshot]) -> float:
    """Over all nodes that were ever seen; of a recording without any, the simulator's own."""
    clocks = {n.name: n.clock_mhz for s in snapshots for n in s.nodes}
    return sum(clocks.values()) / len(clocks) if clocks else _UNIT_MHZ


def _cpu_s(topology: str, operator: str, snapshots: Sequence[Snapshot], mean_mhz: float) -> float:
    """CPU seconds of an operator over the recording, as they would have been on a core of the mean clock."""
    found = 0.0
    for s in snapshots:
        rows = s.metrics.rows_of_operator.get((topology, operator))
        if rows is None:
            continue
        cpu_s = s.metrics.columns["cpu_s"][rows]
        clocks = {n.name: n.clock_mhz for n in s.nodes}
        if set(clocks.values()) != {mean_mhz}:
            homes = (s.placement.get(s.metrics.instances[row]) for row in rows.tolist())
            cpu_s = cpu_s * [clocks.get(slot.node, mean_mhz) / mean_mhz if slot else 1.0 for slot in homes]
        found += float(cpu_s.sum())
    return found


def _losses(snapshots: Sequence[Snapshot], start_s: float) -> tuple[Loss, ...]:
    """Nodes without a live worker, and for how long. The exact time is not recorded: half-way between two cycles."""
    away: dict[str, float] = {}
    found = []
    everyone = {w.slot.node for s in snapshots for w in s.workers}
    for before, now in pairwise(snapshots):
        alive, was = {w.slot.node for w in now.workers}, {w.slot.node for w in before.workers}
        middle_s = (before.at_s + now.at_s) / 2 - start_s
        for node in sorted(was - alive):
            away[node] = middle_s
        for node in sorted((alive & everyone) - was):
            if node in away:
                at_s = away.pop(node)
                found.append(Loss(at_s, node, None, middle_s - at_s))
    return tuple(sorted([*found, *(Loss(at_s, node) for node, at_s in away.items())], key=lambda x: x.at_s))


def _workload(topology: Topology, snapshots: Sequence[Snapshot], start_s: float) -> SimulatedTopology:
    name = topology.name
    work, operators, mean_mhz = {}, [], _mean_mhz(snapshots)
    for operator in topology.operators:
        executed = sum(s.metrics.of_operator(name, operator.name).executed for s in snapshots)
        cpu_s = _cpu_s(name, operator.name, snapshots, mean_mhz)
        cost_s = max(_LEAST_COST_S, cpu_s / executed) if executed > 0 else _LEAST_COST_S
        source = operator.source or not topology.parents(operator.name)
        work[operator.name] = Work(cost_s, load=_load(name, operator.name, snapshots, start_s) if source else None)
        operators.append(replace(operator, source=source))
    flows = tuple(Flow(_selectivity(name, e.source, e.target, snapshots)) for e in topology.edges)
    trigger = _trigger(topology, snapshots, start_s)
    return SimulatedTopology(replace(topology, operators=tuple(operators)), work, flows, trigger)


def _trigger(topology: Topology, snapshots: Sequence[Snapshot], start_s: float) -> Trigger | None:
    """The changes of its level, as a trigger that turns when they came; None where its level stayed."""
    changes, level = [], topology.level
    for snapshot in snapshots:
        now = next((t.level for t in snapshot.topologies if t.name == topology.name), level)
        if now != level:
            changes.append(LevelChange(snapshot.at_s - start_s, now))
            level = now
    highest = min((c.level for c in changes), default=level)
    return Trigger(topology.level, highest, tuple(changes)) if changes else None


def _load(topology: str, operator: str, snapshots: Sequence[Snapshot], start_s: float) -> Load:
    """Rows that fell due, cycle by cycle; several cycles in one piece where there are very many."""
    together = -(-len(snapshots) // _STEPS)
    points = []
    for first in range(0, len(snapshots), together):
        some = snapshots[first : first + together]
        rows = sum(s.metrics.of_operator(topology, operator).arrived for s in some)
        seconds = sum(s.cycle_s for s in some)
        at_s = max(0.0, some[0].at_s - some[0].cycle_s - start_s)
        points.append(f"{at_s:.3f}s={rows / seconds:.6f}")
    return Load.parse("steps " + " ".join(_rising(points)))


def _rising(points: list[str]) -> list[str]:
    """One point for each time: rounding may give two points the same time, which a load would refuse."""
    found: dict[str, str] = {}
    for point in points:
        found[point.partition("=")[0]] = point
    return list(found.values())


def _selectivity(topology: str, source: str, target: str, snapshots: Sequence[Snapshot]) -> float:
    """Rows on this edge for each row that the source executed."""
    sent = executed = 0.0
    for s in snapshots:
        rows = s.metrics.of_operator(topology, source)
        between = s.sent_between.get((topology, source, target))
        sent += rows.emitted if between is None else between
        executed += rows.executed
    return sent / executed if executed > 0 else 1.0
