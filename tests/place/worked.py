"""Six instances with worked traffic (after Aniello et al.), and small clusters for them."""

from collections.abc import Mapping

import numpy as np

from barograph.model import (
    Allotment,
    Demand,
    Edge,
    EdgeTraffic,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    Snapshot,
    Topology,
)

SIX = {
    ("s", "a"): [[80.0, 20.0], [30.0, 70.0]],
    ("a", "b"): [[90.0, 20.0], [10.0, 80.0]],
}


def world(
    counts: Mapping[str, int],
    rates: Mapping[tuple[str, str], list[list[float]]],
    nodes: tuple[Node, ...],
    workers: int | None,
    cpu_pct: float = 100.0,
    placement: Placement | None = None,
) -> tuple[Snapshot, Demand]:
    """One topology "t"; the first operator is the source; edges between operators with rates."""
    names = list(counts)
    topology = Topology(
        "t",
        tuple(Operator(n, counts[n], source=n == names[0]) for n in names),
        tuple(Edge(a, b) for a, b in rates),
        workers=workers,
    )
    snapshot = Snapshot(
        at_s=0,
        cycle_s=1,
        nodes=nodes,
        topologies=(topology,),
        traffic=tuple(EdgeTraffic("t", a, b, np.array(rows)) for (a, b), rows in rates.items()),
        placement=placement or Placement(),
        shared_workers=False,
    )
    demand = Demand(tuple(OperatorDemand("t", n, c, (cpu_pct,) * c) for n, c in counts.items()))
    return snapshot, demand


def six(nodes: tuple[Node, ...], workers: int) -> tuple[Snapshot, Demand]:
    return world({"s": 2, "a": 2, "b": 2}, SIX, nodes, workers)


def farm(count: int, slots: int = 1, cpu_pct: float = 10_000.0) -> tuple[Node, ...]:
    return tuple(Node(f"n{k + 1}", cpu_pct, slots=slots) for k in range(count))


def groups(placement: Placement) -> set[frozenset[str]]:
    return {frozenset(f"{i.operator}{i.index}" for i in held) for held in placement.by_slot().values()}


def sets(*texts: str) -> set[frozenset[str]]:
    return {frozenset(text.split()) for text in texts}


ALL = Allotment()
