"""A file of clusters -> values. It reads; it makes no rates and no decisions.

A file with an ``origin`` is a recording of a cluster that ran: it is read leniently, and each liberty taken is a note.
A file without one was written by its user, and what cannot be is refused with the sentence that names it.
"""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from barograph.model import BadInput, Grouping, Instance, Node, Placement, Slot, Topology
from barograph.model.checks import require, require_unique
from barograph.recordings.fields import Fields, parse
from barograph.recordings.graph import read_topology

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
    try:
        text = shipped() if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{where} cannot be read: {error}") from None
    top = Fields(parse(text, where), where, "origin clusters")
    clusters = top.values.get("clusters")
    require(isinstance(clusters, dict), f"{where} has no clusters")
    assert isinstance(clusters, dict)
    require(name in clusters, f"{where} has no cluster {name!r}; it has {', '.join(clusters) or 'none'}")
    cluster = Fields(clusters[name], f"cluster {name}", "origin nodes topologies placement")
    return _cluster(name, cluster, recorded=top.has("origin") or cluster.has("origin"))


def _cluster(name: str, cluster: Fields, recorded: bool) -> Recording:
    notes: list[str] = []
    nodes = _nodes(cluster)
    require(len(nodes) > 0, f"{cluster.here} has no nodes")
    rows = [read_topology(row, recorded, notes) for row in cluster.rows("topologies")]
    require(len(rows) > 0, f"{cluster.here} has no topologies")
    require_unique(f"{cluster.here}: topologies", (r.topology.name for r in rows))
    if recorded:
        rows.sort(key=lambda r: (r.topology.level, r.priority, -sum(o.parallelism for o in r.topology.operators)))
    if recorded and any(r.priority for r in rows):
        priorities = ", ".join(str(p) for p in sorted({r.priority for r in rows}))
        notes.insert(0, f"the recorded priorities ({priorities}) order the topologies; they are not Barograph's level")
    flows = {(r.topology.name, *edge): rate for r in rows for edge, rate in r.rows_per_s.items()}
    streams = {(r.topology.name, *edge): count for r in rows for edge, count in r.streams.items()}
    topologies = tuple(r.topology for r in rows)
    placed = _placement(cluster, nodes, topologies, notes)
    return Recording(name, tuple(nodes), topologies, flows, streams, placed, tuple(notes))


def _nodes(cluster: Fields) -> list[Node]:
    groups = [Fields(row, f"{cluster.here}: node {k}", NODE) for k, row in enumerate(cluster.rows("nodes"))]
    counts = [1 if g.has("id") else g.whole("count", 1, default=1) for g in groups]
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


def _placement(cluster: Fields, nodes: list[Node], topologies: tuple[Topology, ...], notes: list[str]) -> Placement:
    """What runs now. A node that is gone took its instances with it, which is a note and no error."""
    slots = {n.name: n.slots for n in nodes}
    known = {t.name: {o.name: o.parallelism for o in t.operators} for t in topologies}
    found: dict[Instance, Slot] = {}
    gone: set[str] = set()
    lost = 0
    for k, row in enumerate(cluster.rows("placement")):
        entry = Fields(row, f"{cluster.here}: placement {k}", PLACE)
        instance = Instance(entry.name("topology"), entry.name("operator"), entry.whole("index"))
        slot = Slot(entry.name("node"), entry.whole("slot"))
        count = known.get(instance.topology, {}).get(instance.operator, 0)
        require(instance.index < count, f"{entry.here} names the unknown instance {instance}")
        require(instance not in found, f"{cluster.here}: placement names {instance} twice")
        if slot.node not in slots:
            lost += 1
            gone.add(slot.node)
            continue
        require(slot.index < slots[slot.node], f"{entry.here}: node {slot.node} has no slot {slot.index}")
        found[instance] = slot
    if lost:
        notes.append(f"{lost} instances were on nodes that are gone: {', '.join(sorted(gone))}")
    _one_topology_per_slot(cluster.here, found)
    return Placement(found)


def _one_topology_per_slot(here: str, placed: dict[Instance, Slot]) -> None:
    owner: dict[Slot, str] = {}
    for instance, slot in placed.items():
        first = owner.setdefault(slot, instance.topology)
        require(first == instance.topology, f"{here}: slot {slot} holds both {first} and {instance.topology}")
