"""One topology of a cluster file -> a Topology. Recorded graphs may have loops and operators that do not run."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from barograph.model import BadInput, Edge, Grouping, Operator, Topology
from barograph.model.checks import require, require_unique
from barograph.recordings.edges import Edges, read_edges
from barograph.recordings.fields import ObjectFields
from barograph.recordings.notes import Notes

TOPOLOGY = "name priority level max_heap_mb workers isolate_nodes desired_nodes minimum_nodes components"
COMPONENT = "name source parallelism cpu mem_mb stateful state_mb inputs"
ONE_CORE_PCT = 100.0


@dataclass(frozen=True)
class RecordedTopology:
    """topology is None where nothing of it can run, so that it is skipped; its name still counts as used."""

    name: str
    priority: int
    topology: Topology | None = None
    rows_per_s: dict[tuple[str, str], float] = field(default_factory=dict)
    streams: dict[tuple[str, str, Grouping], int] = field(default_factory=dict)


def read_topology(row: object, notes: Notes) -> RecordedTopology:
    fields = ObjectFields(row, "a topology", TOPOLOGY, notes)
    name = fields.name("name")
    fields.here = here = f"topology {name}"
    priority = fields.whole("priority", default=0)
    rows = enumerate(fields.rows("components"))
    components = [ObjectFields(c, f"{here}: component {k}", COMPONENT, notes) for k, c in rows]
    for component in components:
        component.here = f"{here}: operator {component.name('name')}"
    require_unique(f"{here}: components", (c.name("name") for c in components))
    idle = [c.name("name") for c in components if c.whole("parallelism", 0 if notes.lenient else 1) == 0]
    running = [c for c in components if c.name("name") not in idle]
    if not running and notes.lenient:
        notes.skip(name, "in which no operator has an instance" if components else "without components")
        return RecordedTopology(name, priority)
    require(len(running) > 0, f"{here} has no components")
    edges = read_edges(name, components, idle, notes)
    operators = tuple(_operator(c, edges.all, notes) for c in running)
    if idle:
        notes.add(f"{name}: {len(idle)} operators of 0 instances dropped: {', '.join(idle)}")
    _note_big(name, operators, notes)
    return RecordedTopology(name, priority, _topology(fields, operators, edges, notes), edges.rows_per_s, edges.streams)


def _topology(fields: ObjectFields, operators: tuple[Operator, ...], edges: Edges, notes: Notes) -> Topology:
    name = fields.name("name")
    memory_mb = sum(o.parallelism * (o.memory_mb or 0.0) for o in operators)
    heap_mb = _heap_mb(fields, operators, notes)
    workers = -int(-memory_mb // heap_mb) if heap_mb and memory_mb else None
    return Topology(
        name,
        operators,
        tuple(_mark_loops(operators, edges.all, notes, name) if notes.lenient else edges.all),
        workers=fields.whole("workers", 1) if fields.has("workers") else workers,
        level=fields.whole("level", 1, default=2),
        desired_nodes=fields.whole("desired_nodes", 1) if fields.has("desired_nodes") else None,
        minimum_nodes=fields.whole("minimum_nodes") if fields.has("minimum_nodes") else None,
        isolate_nodes=fields.whole("isolate_nodes", default=0),
        max_heap_mb=heap_mb,
    )


def _heap_mb(fields: ObjectFields, operators: tuple[Operator, ...], notes: Notes) -> float | None:
    """The most a worker may hold. A limit that the largest instance breaks by itself cannot have been kept."""
    if not fields.has("max_heap_mb"):
        return None
    heap_mb = fields.number("max_heap_mb")
    biggest = max(operators, key=lambda o: o.memory_mb or 0.0)
    needed_mb = biggest.memory_mb or 0.0
    if needed_mb <= heap_mb:
        return heap_mb
    found = f"an instance of {biggest.name} needs {needed_mb} MB and max_heap_mb is {heap_mb}"
    require(notes.lenient, f"{fields.here}: {found}")
    notes.add(f"{fields.name('name')}: {found}, so the limit counts as {needed_mb} MB")
    return needed_mb


def _operator(component: ObjectFields, edges: Iterable[Edge], notes: Notes) -> Operator:
    name = component.name("name")
    into = [e for e in edges if e.target == name]
    cpu_pct = component.number("cpu") if component.has("cpu") else None
    if cpu_pct is not None and cpu_pct > ONE_CORE_PCT and not notes.lenient:
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


def _note_big(name: str, operators: Iterable[Operator], notes: Notes) -> None:
    big = [f"{o.name} {o.cpu_pct:g} %" for o in operators if (o.cpu_pct or 0.0) > ONE_CORE_PCT]
    if big:
        notes.add(f"{name}: instances ask for more than one core: {', '.join(big)}")


def _mark_loops(operators: tuple[Operator, ...], edges: list[Edge], notes: Notes, name: str) -> list[Edge]:
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
        notes.add(f"{name}: feedback edges count as traffic but not in the order: {pairs}")
    return [replace(e, feedback=e.feedback or (e.source, e.target) in back) for e in edges]
