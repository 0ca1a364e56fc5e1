"""A file of clusters -> values. It reads; it makes no rates and no decisions.

A file with an ``origin`` is a recording of a cluster that ran: it is read leniently, and each assumption is a note.
Only impossible input is refused: wrong types, negative numbers, names given twice, a cluster without content.
A file without an origin was written by its user and is read strictly: every error is refused with one sentence.
"""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from barograph.model import BadInput, Grouping, Instance, Node, Placement, Slot, Topology
from barograph.model.bounds import MOST_INSTANCES, MOST_NODES, MOST_SLOTS, require_few_nodes
from barograph.model.checks import require, require_at_most, require_unique
from barograph.recordings.fields import ObjectFields, parse
from barograph.recordings.graph import read_topology
from barograph.recordings.notes import Notes, some

NODE = "id count rack slots mem_mb cpu seats clock_mhz"
PLACE = "topology operator index node slot"


@dataclass(frozen=True)
class Recording:
    """One cluster of a file. rows_per_s: (topology, source, target) -> what the file says flows there, where it says.
    streams: (topology, source, target, grouping) -> how many streams that edge is.

    Topologies stand in the order of their submission, which is that of the file. A recorded cluster does not say in
    what order its topologies were submitted: they stand by its priorities, the largest first among equals.
    placed: what runs now, less what was on nodes that are gone.
    """

    name: str
    nodes: tuple[Node, ...]
    topologies: tuple[Topology, ...]
    rows_per_s: dict[tuple[str, str, str], float]
    streams: dict[tuple[str, str, str, Grouping], int]
    placed: Placement
    notes: tuple[str, ...]


def shipped() -> str:
    """The recordings that come with Barograph, as text."""
    return resources.files("barograph.data").joinpath("recorded-clusters.json").read_text(encoding="utf-8")


def read(file: Path | None, name: str) -> Recording:
    """The cluster of that name, from a file or (None) from the recordings that ship."""
    where = "the shipped recordings" if file is None else str(file)
    text = shipped() if file is None else _text(file)
    whole = parse(text, where)
    notes = Notes(_is_recorded(whole))
    clusters = ObjectFields(whole, where, "origin clusters", notes).values.get("clusters")
    if not isinstance(clusters, dict):
        raise BadInput(f"{where} has no clusters")
    require(name in clusters, f"{where} has no cluster {name!r}; it has {', '.join(map(repr, clusters)) or 'none'}")
    notes.lenient = notes.lenient or _is_recorded(clusters[name])
    return _cluster(
        name, ObjectFields(clusters[name], f"cluster {name}", "origin nodes topologies placement", notes), notes
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}") from None


def names(file: Path) -> tuple[str, ...]:
    """The clusters that a file has."""
    clusters = ObjectFields(parse(_text(file), str(file)), str(file), "origin clusters", Notes(lenient=True)).values
    found = clusters.get("clusters")
    return tuple(found) if isinstance(found, dict) else ()


def _is_recorded(value: object) -> bool:
    return isinstance(value, dict) and value.get("origin") is not None


def _cluster(name: str, cluster: ObjectFields, notes: Notes) -> Recording:
    nodes = _nodes(cluster, notes)
    require(len(nodes) > 0, f"{cluster.here} has no nodes")
    rows = [read_topology(row, notes) for row in cluster.rows("topologies")]
    require(len(rows) > 0, f"{cluster.here} has no topologies")
    require_unique(f"{cluster.here}: topologies", (r.name for r in rows))
    kept = [(r, r.topology) for r in rows if r.topology is not None]
    require(len(kept) > 0, f"{cluster.here} has no topology with an operator that runs")
    size = {t.name: sum(o.parallelism for o in t.operators) for _, t in kept}
    require_at_most(f"{cluster.here}: the number of instances", sum(size.values()), MOST_INSTANCES)
    for _, topology in kept:
        require_few_nodes(cluster.here, topology)
    if notes.lenient:
        kept.sort(key=lambda each: (each[1].level, each[0].priority, -size[each[1].name]))
    if notes.lenient and any(r.priority for r, _ in kept):
        priorities = ", ".join(str(p) for p in sorted({r.priority for r, _ in kept}))
        notes.priorities = (
            f"the recorded priorities ({priorities}) order the topologies; they are not Barograph's level"
        )
    flows = {(r.name, *edge): rate for r, _ in kept for edge, rate in r.rows_per_s.items()}
    streams = {(r.name, *edge): count for r, _ in kept for edge, count in r.streams.items()}
    topologies = tuple(t for _, t in kept)
    placed = _placement(cluster, nodes, topologies, notes)
    return Recording(name, tuple(nodes), topologies, flows, streams, placed, notes.sentences())


def _nodes(cluster: ObjectFields, notes: Notes) -> list[Node]:
    groups = [
        ObjectFields(row, f"{cluster.here}: node {k}", NODE, notes) for k, row in enumerate(cluster.rows("nodes"))
    ]
    counts = [1 if g.has("id") else g.whole("count", 1, default=1) for g in groups]
    slots = sum(g.whole("slots", 1) * count for g, count in zip(groups, counts, strict=True))
    require_at_most(f"{cluster.here}: the number of nodes", sum(counts), MOST_NODES)
    require_at_most(f"{cluster.here}: the number of slots", slots, MOST_SLOTS)
    digits = max(4, len(str(sum(counts))))
    found: list[Node] = []
    for group, count in zip(groups, counts, strict=True):
        require(not (group.has("id") and group.has("count")), f"{group.here} has both an id and a count")
        for _ in range(count):
            # A node without an id is named after its place in the file.
            name = group.name("id") if group.has("id") else f"n{len(found):0{digits}d}"
            found.append(
                Node(
                    name,
                    cpu_pct=group.number("cpu"),
                    slots=group.whole("slots", 1),
                    seats=group.whole("seats", 1) if group.has("seats") else None,
                    memory_mb=group.number("mem_mb") if group.has("mem_mb") else None,
                    clock_mhz=group.number("clock_mhz", 1000.0),
                    rack=group.name("rack", ""),
                )
            )
    require_unique(f"{cluster.here}: nodes", (n.name for n in found))
    return found


def _placement(cluster: ObjectFields, nodes: list[Node], topologies: tuple[Topology, ...], notes: Notes) -> Placement:
    """What runs now. A node that is gone took its instances with it, which is a note and no error."""
    slots = {n.name: n.slots for n in nodes}
    known = {t.name: {o.name: o.parallelism for o in t.operators} for t in topologies}
    found: dict[Instance, Slot] = {}
    lost: list[str] = []
    strays: list[str] = []
    for k, row in enumerate(cluster.rows("placement")):
        entry = ObjectFields(row, f"{cluster.here}: placement {k}", PLACE, notes)
        instance = Instance(entry.name("topology"), entry.name("operator"), entry.whole("index"))
        slot = Slot(entry.name("node"), entry.whole("slot"))
        if instance.index >= known.get(instance.topology, {}).get(instance.operator, 0):
            require(notes.lenient, f"{entry.here} names the unknown instance {instance}")
            strays.append(str(instance))
            continue
        require(instance not in found, f"{cluster.here}: placement names {instance} twice")
        if slot.node not in slots:
            lost.append(slot.node)
            continue
        require(slot.index < slots[slot.node], f"{entry.here}: node {slot.node} has no slot {slot.index}")
        found[instance] = slot
    if lost:
        notes.add(f"{len(lost)} instances were on nodes that are gone: {', '.join(sorted(set(lost)))}")
    if strays:
        notes.add(f"the placement of instances that do not run is ignored: {some(strays)}")
    _one_topology_per_slot(cluster.here, found)
    return Placement(found)


def _one_topology_per_slot(here: str, placed: dict[Instance, Slot]) -> None:
    owner: dict[Slot, str] = {}
    for instance, slot in placed.items():
        first = owner.setdefault(slot, instance.topology)
        require(first == instance.topology, f"{here}: slot {slot} holds both {first} and {instance.topology}")
