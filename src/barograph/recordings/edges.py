"""The inputs of a topology's components -> its edges, with notes on groupings that Spark does not have.

Storm has groupings that Spark does not have. For planning, what counts is how rows spread over the receiving
instances: local-or-shuffle and unnamed ones spread evenly, partial-key goes by key, and a custom one is unknown, for
which an even spread is the least wrong guess. To run such a topology on Spark, another grouping must be chosen.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from barograph.model import Edge, Grouping
from barograph.model.checks import require
from barograph.recordings.fields import ObjectFields
from barograph.recordings.notes import Notes

INPUT = "from grouping feedback rows_per_s"
NO_SPARK_FORM = {"local_or_shuffle": Grouping.SHUFFLE, "partial_key": Grouping.FIELDS}
_NONE = "none"


@dataclass
class Edges:
    """rows_per_s: (source, target) -> what the file says flows there. streams: how many streams an edge is."""

    all: list[Edge] = field(default_factory=list)
    rows_per_s: dict[tuple[str, str], float] = field(default_factory=dict)
    streams: dict[tuple[str, str, Grouping], int] = field(default_factory=dict)


def read_edges(name: str, components: Iterable[ObjectFields], idle: Iterable[str], notes: Notes) -> Edges:
    """idle: operators without instances; their edges are left out."""
    components, idle = list(components), set(idle)
    known = {c.name("name") for c in components}
    found: dict[tuple[str, str, Grouping], Edge] = {}
    edges = Edges()
    odd: dict[str, list[str]] = {}
    strays = []
    for component in components:
        target = component.name("name")
        for k, row in enumerate(component.rows("inputs")):
            given = ObjectFields(row, f"{component.here}: input {k}", INPUT, notes)
            source = given.name("from")
            rate, feedback = given.number("rows_per_s", 0.0), given.flag("feedback")
            if source not in known and notes.lenient:
                strays.append(f"{source}->{target}")
                continue
            require(source in known, f"{component.here}: input names the unknown operator {source!r}")
            grouping, liberty = _grouping(given, notes.lenient)
            if liberty:
                odd.setdefault(liberty, []).append(f"{source}->{target}")
            if given.has("rows_per_s"):
                edges.rows_per_s[source, target] = edges.rows_per_s.get((source, target), 0.0) + rate
            if source in idle or target in idle:
                continue
            key = (source, target, grouping)
            require(notes.lenient or key not in found, f"topology {name}: the edge {source}->{target} is given twice")
            edges.streams[key] = edges.streams.get(key, 0) + 1
            found[key] = Edge(*key, feedback=feedback)
    edges.all = list(found.values())
    for liberty, pairs in odd.items():
        notes.add(f"{name}: {liberty}: {', '.join(pairs)}")
    if strays:
        notes.add(f"{name}: inputs from operators that the topology does not have are left out: {', '.join(strays)}")
    several = [f"{a}->{b} x {count}" for (a, b, _), count in edges.streams.items() if count > 1]
    if several:
        notes.add(f"{name}: an edge recorded several times is one edge of as many streams: {', '.join(several)}")
    return edges


def _grouping(given: ObjectFields, lenient: bool) -> tuple[Grouping, str]:
    """How the rows of an input are assumed to spread, and a note on the assumption, empty where there is none."""
    if lenient and not given.has("grouping"):
        return Grouping.SHUFFLE, "a grouping that is not given counts as shuffle"
    if not lenient:
        text = given.name("grouping")
        require(text not in NO_SPARK_FORM, f"{given.here}: grouping {text!r} has no Spark form; {_there_are()}")
        require(text in set(Grouping), f"{given.here}: unknown grouping {text!r}; {_there_are()}")
        return Grouping(text), ""
    text = given.text("grouping")
    spelt = _squeezed(text)
    for grouping in Grouping:
        if spelt == grouping.value:
            return grouping, ""
    if spelt == _NONE:
        return Grouping.SHUFFLE, "grouping none read as shuffle"
    for name, grouping in NO_SPARK_FORM.items():
        if spelt == _squeezed(name):
            return grouping, f"the grouping {name} has no Spark form and counts as {grouping}"
    return Grouping.SHUFFLE, f"the custom grouping {text!r} has no Spark form and counts as shuffle"


def _squeezed(text: str) -> str:
    """localOrShuffle, LOCAL_OR_SHUFFLE and local-or-shuffle are the same."""
    return text.lower().replace("_", "").replace("-", "")


def _there_are() -> str:
    return f"there are {', '.join(Grouping)}"
