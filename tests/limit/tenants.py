"""Topologies of one operator each, "a", whose instances are written topology/index."""

from collections import Counter
from collections.abc import Iterable, Mapping

from barograph.model import Instance, Operator, Placement, Slot, Topology


def instance(name: str) -> Instance:
    topology, index = name.split("/")
    return Instance(topology, "a", int(index))


def placed(at: Mapping[str, str]) -> Placement:
    """at: instance -> node."""
    return Placement({instance(name): Slot(node) for name, node in at.items()})


def topologies_of(names: Iterable[str]) -> tuple[Topology, ...]:
    """The topologies whose instances these are."""
    counts = Counter(instance(name).topology for name in names)
    return tuple(Topology(t, (Operator("a", c),)) for t, c in counts.items())
