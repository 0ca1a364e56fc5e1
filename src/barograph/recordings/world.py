"""A recording as a Snapshot and a Demand: what a policy sees when it plans the cluster.

Recordings hold no rates. ``synthetic`` generates some, the same for the same seed: each source instance emits 100
rows/s, every operator passes on what it gets, and rows are spread by the groupings. Even edges stay broadcast views.
"""

import numpy as np
from numpy.typing import NDArray

from barograph.model import Demand, EdgeTraffic, Grouping, OperatorDemand, Snapshot, Topology
from barograph.recordings.read import Recording

SOURCE_ROWS_PER_S = 100.0
CYCLE_S = 1.0  # so that rows of a cycle are rows a second
Matrix = NDArray[np.float64]


def snapshot_of(recording: Recording, synthetic: bool = False, seed: int = 0) -> Snapshot:
    traffic: list[EdgeTraffic] = []
    for position, topology in enumerate(recording.topologies):
        traffic += _traffic(recording, topology, [seed, position]) if synthetic else _given(recording, topology, seed)
    return Snapshot(
        at_s=0.0,
        cycle_s=CYCLE_S,
        nodes=recording.nodes,
        topologies=recording.topologies,
        placement=recording.placed,
        traffic=tuple(traffic),
        shared_workers=False,
    )


def demand_of(recording: Recording) -> Demand:
    """As many instances as recorded, each with the share it declares."""
    return Demand(
        tuple(
            OperatorDemand(t.name, o.name, o.parallelism, (float(o.cpu_pct or 0.0),) * o.parallelism)
            for t in recording.topologies
            for o in t.operators
        )
    )


def zipf(count: int, rng: np.random.Generator) -> Matrix:
    """Shares by Zipf(1.0): the k-th of a seeded order gets 1/k, scaled to a sum of 1."""
    shares = np.empty(count)
    shares[rng.permutation(count)] = 1.0 / np.arange(1, count + 1)
    found: Matrix = shares / shares.sum()
    return found


def dealt(grouping: Grouping, out: Matrix, targets: int, rng: np.random.Generator) -> Matrix:
    """rows[i, j] when instance i sends ``out[i]`` rows a second to an operator of ``targets`` instances."""
    n = len(out)
    even = n > 0 and bool((out == out[0]).all())
    if grouping in (Grouping.SHUFFLE, Grouping.ALL):
        each = out / targets if grouping is Grouping.SHUFFLE else out
        return np.broadcast_to(each[0] if even else each[:, None], (n, targets))
    if grouping is Grouping.FIELDS:
        shares = zipf(targets, rng)
        return np.broadcast_to(out[0] * shares, (n, targets)) if even else np.outer(out, shares)
    rows = np.zeros((n, targets))
    rows[np.arange(n), 0 if grouping is Grouping.GLOBAL else np.arange(n) % targets] = out
    return rows


def _traffic(recording: Recording, topology: Topology, seed: list[int]) -> list[EdgeTraffic]:
    """Synthetic rates. Feedback edges carry rows but add to no operator's rate, or a loop would never settle."""
    rng = np.random.default_rng(seed)
    counts = {o.name: o.parallelism for o in topology.operators}
    got: dict[str, Matrix] = {name: np.zeros(count) for name, count in counts.items()}
    found: list[EdgeTraffic] = []
    for operator in topology.order:
        out = got[operator.name]
        if operator.source or not topology.parents(operator.name):
            out = out + SOURCE_ROWS_PER_S
        for edge in topology.edges:
            if edge.source != operator.name:
                continue
            streams = recording.streams.get((topology.name, edge.source, edge.target, edge.grouping), 1)
            rows = dealt(edge.grouping, out * (streams * CYCLE_S), counts[edge.target], rng)
            found.append(EdgeTraffic(topology.name, edge.source, edge.target, rows))
            if not edge.feedback:
                got[edge.target] = got[edge.target] + rows.sum(axis=0) / CYCLE_S
    return found


def _given(recording: Recording, topology: Topology, seed: int) -> list[EdgeTraffic]:
    """What the file says flows over each edge, spread over the instances by the edge's grouping."""
    rng = np.random.default_rng(seed)
    counts = {o.name: o.parallelism for o in topology.operators}
    found = []
    for edge in topology.edges:
        rate = recording.rows_per_s.get((topology.name, edge.source, edge.target))
        if rate is not None:
            n = counts[edge.source]
            rows = dealt(edge.grouping, np.full(n, rate * CYCLE_S / n), counts[edge.target], rng)
            found.append(EdgeTraffic(topology.name, edge.source, edge.target, rows))
    return found
