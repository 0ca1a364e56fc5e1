"""A recorded cluster as a scenario of flows, so that whole clusters can be simulated.

A recording has what instances declare, but no rates. So each source instance gets 100 rows/s, varied by 30 % up and
down once in ten minutes, and every operator passes on what it gets. The cost of a row is chosen so that at 100 rows/s
an instance that gets an even part uses 60 % of what it declares, and at most 80 % of a core. Keys are by Zipf(1.0) over
the receiving instances where ``skew`` says so. A node is one worker with room for all, as Spark runs it.
"""

from dataclasses import replace

from barograph.engines.sim.scenario.definition import Flow, Scenario, SimulatedTopology, Work
from barograph.engines.sim.scenario.read import SOURCE_FIXED
from barograph.model import Grouping, Operator, Topology
from barograph.model.loads.load import Load
from barograph.recordings import Recording

_USED = 0.6
_MOST_CORES = 0.8
_MOST_COST_S = 0.05  # so that an instance with few rows uses little CPU
_SEATS = 400
_SHAPE = ((0, 1.0), (150, 1.3), (300, 1.0), (450, 0.7), (600, 1.0))


def scenario_of(recording: Recording, duration_s: float = 600.0, skew: float = 0.0) -> Scenario:
    return Scenario(
        name=f"recording:{recording.name}",
        title=f"the recorded cluster {recording.name}",
        nodes=tuple(replace(n, slots=1, seats=_SEATS) for n in recording.nodes),
        workloads=tuple(_workload(recording, t, skew) for t in recording.topologies),
        duration_s=duration_s,
        grain="flows",
        step_s=2.5,
        notes=recording.notes,
    )


def _workload(recording: Recording, topology: Topology, skew: float) -> SimulatedTopology:
    got: dict[str, float] = dict.fromkeys((o.name for o in topology.operators), 0.0)
    work: dict[str, Work] = {}
    operators: dict[str, Operator] = {}
    for operator in topology.order:
        source = not topology.parents(operator.name)
        if source:
            got[operator.name] = 100.0 * operator.parallelism
        cores = min(_MOST_CORES, _USED * (operator.cpu_pct or 10.0) / 100.0)
        each = max(1e-3, got[operator.name] / operator.parallelism)
        cost_s = min(_MOST_COST_S, cores / each)
        work[operator.name] = Work(cost_s, 0.0, _load(operator.parallelism) if source else None)
        fixed = SOURCE_FIXED if source else ""
        operators[operator.name] = replace(operator, source=source, fixed_because=fixed)
        for edge in topology.edges:
            if edge.source == operator.name and not edge.feedback:
                streams = recording.streams.get((topology.name, edge.source, edge.target, edge.grouping), 1)
                copies = topology.operator(edge.target).parallelism if edge.grouping is Grouping.ALL else 1
                got[edge.target] += got[operator.name] * streams * copies
    flows = tuple(
        Flow(float(recording.streams.get((topology.name, e.source, e.target, e.grouping), 1)), 0, skew)
        for e in topology.edges
    )
    return SimulatedTopology(
        replace(topology, operators=tuple(operators[o.name] for o in topology.operators)), work, flows
    )


def _load(instances: int) -> Load:
    points = " ".join(f"{t}s={100.0 * instances * factor:g}" for t, factor in _SHAPE)
    return Load.parse(f"ramp {points}")
