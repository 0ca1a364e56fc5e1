"""One topology of a cluster file -> a Topology. Recorded graphs may have loops and operators that do not run."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from barograph.model import BadInput, Edge, Grouping, Operator, Topology
from barograph.model.checks import require, require_unique
from barograph.recordings.fields import Fields

TOPOLOGY = "name priority level max_heap_mb workers isolate_nodes desired_nodes minimum_nodes components"
COMPONENT = "name source parallelism cpu mem_mb stateful state_mb inputs"
INPUT = "from grouping feedback rows_per_s"
ONE_CORE_PCT = 100.0


@dataclass(frozen=True)
class RecordedTopology:
    topology: Topology
    priority: int
    rows_per_s: dict[tuple[str, str], float]
    streams: dict[tuple[str, str, Grouping], int]


def read_topology(row: object, recorded: bool, notes: list[str]) -> RecordedTopology:
    fields = Fields(row, "a topology", TOPOLOGY)
    name = fields.name("name")
    fields.here = here = f"topology {name}"
    components = [Fields(c, f"{here}: component {k}", COMPONENT) for k, c in enumerate(fields.rows("components"))]
    require(len(components) > 0, f"{here} has no components")
    for component in components:
        component.here = f"{here}: operator {component.name('name')}"
    require_unique(f"{here}: components", (c.name("name") for c in components))
    idle = [c.name("name") for c in components if c.whole("parallelism", 0 if recorded else 1) == 0]
    edges, rates, streams = _edges(here, components, idle, recorded, notes)
    running = [c for c in components if c.name("name") not in idle]
    require(len(running) > 0, f"{here} has no operator that runs")
    operators = tuple(_operator(c, edges, recorded) for c in running)
    if idle:
        notes.append(f"{name}: {len(idle)} operators of 0 instances dropped: {', '.join(idle)}")
    _note_big(name, operators, notes)
    edges = _mark_loops(operators, edges, notes, name) if recorded else edges
    memory_mb = sum(o.parallelism * (o.memory_mb or 0.0) for o in operators)
    heap_mb = fields.number("max_heap_mb") if fields.has("max_heap_mb") else None
    biggest = max(operators, key=lambda o: o.memory_mb or 0.0)
    require(
        heap_mb is None or (biggest.memory_mb or 0.0) <= heap_mb,
        f"{here}: an instance of {biggest.name} needs {biggest.memory_mb} MB and max_heap_mb is {heap_mb}",
    )
    workers = -int(-memory_mb // heap_mb) if heap_mb and memory_mb else None
    topology = Topology(
        name,
        operators,
        tuple(edges),
        workers=fields.whole("workers", 1) if fields.has("workers") else workers,
        level=fields.whole("level", 1, default=2),
        desired_nodes=fields.whole("desired_nodes", 1) if fields.has("desired_nodes") else None,
        minimum_nodes=fields.whole("minimum_nodes") if fields.has("minimum_nodes") else None,
        isolate_nodes=fields.whole("isolate_nodes", default=0),
        max_heap_mb=heap_mb,
    )
    return RecordedTopology(topology, fields.whole("priority", default=0), rates, streams)


def _operator(component: Fields, edges: Iterable[Edge], recorded: bool) -> Operator:
    name = component.name("name")
    into = [e for e in edges if e.target == name]
    cpu_pct = component.number("cpu") if component.has("cpu") else None
    if cpu_pct is not None and cpu_pct > ONE_CORE_PCT and not recorded:
        raise BadInput(f"{component.here}: cpu is {cpu_pct:g} % of a core, and one instance can use at most 100 %")
    return Operator(
        name,
        component.whole("parallelism", 1),
        source=component.flag("source"),
        stateful=component.flag("stateful", any(e.grouping is Grouping.FIELDS for e in into)),
        cpu_pct=cpu_pct,
        memory_mb=component.number("mem_mb") if component.has("mem_mb") else None,
        state_mb=component.number("state_mb", 0.0),
    )


def _note_big(name: str, operators: Iterable[Operator], notes: list[str]) -> None:
    big = [f"{o.name} {o.cpu_pct:g} %" for o in operators if (o.cpu_pct or 0.0) > ONE_CORE_PCT]
    if big:
        notes.append(f"{name}: instances ask for more than one core: {', '.join(big)}")


def _edges(
    here: str, components: list[Fields], idle: list[str], recorded: bool, notes: list[str]
) -> tuple[list[Edge], dict[tuple[str, str], float], dict[tuple[str, str, Grouping], int]]:
    known = {c.name("name") for c in components}
    edges: dict[tuple[str, str, Grouping], Edge] = {}
    rates: dict[tuple[str, str], float] = {}
    streams: dict[tuple[str, str, Grouping], int] = {}
    unnamed = []
    for component in components:
        target = component.name("name")
        for k, row in enumerate(component.rows("inputs")):
            given = Fields(row, f"{component.here}: input {k}", INPUT)
            source = given.name("from")
            require(source in known, f"{component.here}: input names the unknown operator {source!r}")
            grouping = given.name("grouping")
            if recorded and grouping == "none":
                unnamed.append(f"{source}->{target}")
                grouping = "shuffle"
            require(
                grouping in {g.value for g in Grouping},
                f"{given.here}: unknown grouping {grouping!r}; there are {', '.join(Grouping)}",
            )
            rate = given.number("rows_per_s", 0.0)
            if given.has("rows_per_s"):
                rates[source, target] = rates.get((source, target), 0.0) + rate
            if source in idle or target in idle:
                continue
            key = (source, target, Grouping(grouping))
            require(recorded or key not in edges, f"{here}: the edge {source}->{target} is given twice")
            streams[key] = streams.get(key, 0) + 1
            edges[key] = Edge(*key, feedback=given.flag("feedback"))
    name = here.removeprefix("topology ")
    if unnamed:
        notes.append(f"{name}: grouping none read as shuffle: {', '.join(unnamed)}")
    several = [f"{a}->{b} x {count}" for (a, b, _), count in streams.items() if count > 1]
    if several:
        notes.append(f"{name}: an edge recorded several times is one edge of as many streams: {', '.join(several)}")
    return list(edges.values()), rates, streams


def _mark_loops(operators: tuple[Operator, ...], edges: list[Edge], notes: list[str], name: str) -> list[Edge]:
    """Edges that close a loop on a walk from the sources, depth first in listed order, become feedback edges."""
    out: dict[str, list[Edge]] = {o.name: [e for e in edges if e.source == o.name] for o in operators}
    fed = {e.target for e in edges if e.source != e.target}
    starts = sorted(operators, key=lambda o: (not o.source, o.name in fed))
    state: dict[str, int] = {}  # 1: on the present path, 2: done
    back: set[tuple[str, str]] = set()
    for start in starts:
        path = [(start.name, iter(out[start.name]))] if start.name not in state else []
        state.setdefault(start.name, 1)
        while path:
            here, ahead = path[-1]
            edge = next(ahead, None)
            if edge is None:
                state[here] = 2
                path.pop()
            elif state.get(edge.target) == 1:
                back.add((here, edge.target))
            elif edge.target not in state:
                state[edge.target] = 1
                path.append((edge.target, iter(out[edge.target])))
    if back:
        pairs = ", ".join(f"{a}->{b}" for a, b in sorted(back))
        notes.append(f"{name}: feedback edges count as traffic but not in the order: {pairs}")
    return [replace(e, feedback=e.feedback or (e.source, e.target) in back) for e in edges]
