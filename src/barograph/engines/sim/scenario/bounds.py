"""How large a scenario may be. A larger one is refused in one sentence before anything is computed.

A simulation computes every step, and with grain rows every row, so one wrong number (a count of 1e9) would run for
years or take all memory. The bounds leave room for a fortnight of steps of 0.25 s and for eight times the rows of the
largest scenario that ships; docs/simulator.md lists them.
"""

from collections.abc import Sequence
from dataclasses import replace

from barograph.engines.sim.scenario.definition import Scenario, SimulatedTopology
from barograph.model import BadInput, Grouping, Node, Operator
from barograph.model.bounds import MOST_INSTANCES, MOST_NODES, require_few_nodes
from barograph.model.checks import require, require_at_most, require_between

MOST_STEPS = 5_000_000
MOST_TURNS = 500_000  # cycles, epochs or reassignments: each costs far more than a step
MOST_VARIANTS = 10_000
MOST_OPERATORS = 1_000  # of a chain, which is written as one number
MOST_KEYS = 1_000_000
MOST_WORKERS = 50_000
MOST_SEATS = 10_000  # of a worker
CPU_PCT = (0.1, 1e6)  # of a node
CLOCK_MHZ = (1.0, 1e6)
COST_MS = (1e-6, 3.6e6)  # of a row
MOST_PAIRS = 10_000_000  # of instances joined by edges; grain rows holds several matrices of them
MOST_ROWS = 200_000_000  # that operators execute in a run, with grain rows
MOST_FLOW = 1e15  # rows in a run, with grain flows: beyond it a float no longer tells two rows apart
LEAST_S = 1e-6


def require_bounds(scenario: Scenario, where: str) -> None:
    """Bounds of both grains. where: names the scenario in the error."""
    require_nodes(scenario.nodes, where)
    require_instances(scenario, where)
    require_times(scenario, where)


def require_rows(scenario: Scenario, grain: str, where: str) -> None:
    try:
        rows = sum(rows_of(w, scenario.duration_s) for w in scenario.workloads)
    except BadInput as error:  # a load in too many pieces
        raise BadInput(f"{where}: {error}") from None
    if grain == "flows":
        require(rows <= MOST_FLOW, f"{where}: the run has {rows:.3g} rows; grain flows takes at most {MOST_FLOW:g}")
        return
    most = f"grain rows takes at most {MOST_ROWS:,}, and grain flows takes more"
    require(rows <= MOST_ROWS, f"{where}: the run has {rows:.3g} rows; {most}")
    pairs = sum(_pairs(w) for w in scenario.workloads)
    most = f"grain rows takes at most {MOST_PAIRS:,}, and grain flows takes more"
    require(pairs <= MOST_PAIRS, f"{where}: edges join {pairs:,} pairs of instances; {most}")


def fitting(scenario: Scenario) -> Scenario:
    """The scenario, in grain flows or longer steps where it would exceed a bound, so that any history is replayed."""
    rows = sum(rows_of(w, scenario.duration_s) for w in scenario.workloads)
    many = rows > MOST_ROWS or sum(_pairs(w) for w in scenario.workloads) > MOST_PAIRS
    step_s = max(scenario.step_s, 1.001 * scenario.duration_s / MOST_STEPS)
    return replace(scenario, grain="flows" if many else scenario.grain, step_s=step_s)


def require_nodes(nodes: Sequence[Node], where: str) -> None:
    require_at_most(f"{where}: the number of nodes", len(nodes), MOST_NODES)
    require_at_most(f"{where}: the number of slots", sum(n.slots for n in nodes), MOST_WORKERS)
    for node in nodes:
        here = f"{where}: node {node.name}"
        require_at_most(f"{here}: seats", node.seats or 0, MOST_SEATS)
        require_between(f"{here}: cpu_pct", node.cpu_pct, *CPU_PCT)
        require_between(f"{here}: clock_mhz", node.clock_mhz, *CLOCK_MHZ)


def require_instances(scenario: Scenario, where: str) -> None:
    """Not too many instances in total, and no topology with more instances than there are seats."""
    topologies = [w.topology for w in scenario.workloads]
    most = sum(_most(o) for t in topologies for o in t.operators)
    require_at_most(f"{where}: the number of instances", most, MOST_INSTANCES)
    seats = sum(n.slots * (n.seats or 1) for n in scenario.nodes)
    for topology in topologies:
        require_few_nodes(where, topology)
        size = sum(o.parallelism for o in topology.operators)
        require(
            size <= seats,
            f"{where}: topology {topology.name} has {size:,} instances, and all nodes together have {seats:,} seats",
        )


def require_times(scenario: Scenario, where: str) -> None:
    turns = {"cycle_s": scenario.cycle_s, "epoch_s": scenario.epoch_s}
    if scenario.reassign is not None:
        turns["reassign.every_s"] = scenario.reassign.every_s
    require_turns(f"{where}: step_s", scenario.duration_s, scenario.step_s, MOST_STEPS)
    for name, each_s in turns.items():
        require_turns(f"{where}: {name}", scenario.duration_s, each_s)


def require_turns(field: str, duration_s: float, each_s: float, most: int = MOST_TURNS) -> None:
    """Bounds how often something that happens every each_s seconds happens in the run."""
    require(duration_s >= LEAST_S, f"{field}: duration_s must be at least {LEAST_S:g}, not {duration_s:g}")
    require(each_s >= LEAST_S, f"{field} must be at least {LEAST_S:g}, not {each_s:g}")
    turns = duration_s / each_s
    require(turns <= most, f"{field} of {each_s:g} fits {turns:.3g} times into duration_s; a run has at most {most:,}")


def rows_of(workload: SimulatedTopology, duration_s: float) -> float:
    """Rows that its operators would execute in all, if they kept up with the load."""
    topology = workload.topology
    rows = dict.fromkeys((o.name for o in topology.operators), 0.0)
    for operator in topology.order:
        load = workload.work[operator.name].load
        if load is not None:
            rows[operator.name] += load.schedule(duration_s).rows_by(duration_s)
        for edge, flow in zip(topology.edges, workload.flow, strict=True):
            if edge.source == operator.name and not edge.feedback:
                copies = _most(topology.operator(edge.target)) if edge.grouping is Grouping.ALL else 1
                rows[edge.target] += rows[operator.name] * flow.selectivity * copies
    return sum(rows.values())


def _most(operator: Operator) -> int:
    return max(operator.parallelism, operator.min_parallelism, operator.max_parallelism or 0)


def _pairs(workload: SimulatedTopology) -> int:
    of = workload.topology.operator
    return sum(_most(of(e.source)) * _most(of(e.target)) for e in workload.topology.edges if not e.feedback)
