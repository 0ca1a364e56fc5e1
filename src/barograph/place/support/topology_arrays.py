"""One topology's instances as arrays: what each demands, where it is now, and the rows that flow between them.

Instances are numbered operator after operator as listed, index rising (Storm's task ids). Traffic is kept as one block
per edge; a block whose matrix is a product of a row factor and a column factor is recognised as such, so that the
traffic between an instance and all nodes costs a few operations however many instances the other operator has.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.model import Demand, EdgeTraffic, Instance, Operator, OperatorDemand, Snapshot, Topology
from barograph.place.support.cluster_arrays import ClusterArrays, Real, Whole


@dataclass(frozen=True, eq=False)
class Block:
    """Rows a second from instances ``sources`` to instances ``targets``: ``rate(i, j) = scale * rows[i, j]``.

    x, z: where the matrix is a product, ``rate(i, j) = x[i] * z[j]``; None where it is not.
    """

    source: int
    target: int
    rows: NDArray[np.float64]
    scale: float
    x: Real | None
    z: Real | None

    @property
    def sources(self) -> slice:
        return slice(self.source, self.source + self.rows.shape[0])

    @property
    def targets(self) -> slice:
        return slice(self.target, self.target + self.rows.shape[1])

    def row(self, i: int) -> Real:
        found: Real = self.rows[i] * self.scale
        return found

    def column(self, j: int) -> Real:
        found: Real = self.rows[:, j] * self.scale
        return found


@dataclass(frozen=True, eq=False)
class TopologyArrays:
    """cpu_pct: demanded share of each instance. present: its slot's number now, -1 for none or a lost slot."""

    topology: Topology
    number: int
    operators: tuple[Operator, ...]
    counts: Whole
    start: Whole
    instances: tuple[Instance, ...]
    operator_of: Whole
    cpu_pct: Real
    memory_mb: Real
    state_mb: Real
    stateful: NDArray[np.bool_]
    present: Whole
    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        return len(self.instances)

    def operator_position(self, name: str) -> int:
        return next(k for k, o in enumerate(self.operators) if o.name == name)


def factors(rows: NDArray[np.float64]) -> tuple[Real, Real] | None:
    """x, z with rows = outer(x, z), or None. Views that repeat one row or one column have a stride of 0."""
    n, m = rows.shape
    if n == 0 or m == 0:
        return np.zeros(n), np.zeros(m)
    if rows.strides[1] == 0 or m == 1:
        return rows[:, 0].copy(), np.ones(m)
    if rows.strides[0] == 0 or n == 1:
        return np.ones(n), rows[0].copy()
    total = float(rows.sum())
    if total <= 0:
        return np.zeros(n), np.zeros(m)
    x, z = rows.sum(axis=1), rows.sum(axis=0) / total
    close = 1e-9 * total / (n * m)
    for i in [0, n // 2, n - 1, *range(n)]:  # a few rows far apart first, to detect early that the matrix is no product
        if float(np.abs(rows[i] - x[i] * z).max()) > close:
            return None
    return x, z


def _block(edge: EdgeTraffic, cycle_s: float, starts: Mapping[str, tuple[int, int]]) -> Block:
    (source, n), (target, m) = starts[edge.source], starts[edge.target]
    rows = edge.rows
    if rows.shape != (n, m):
        # The operator is being rescaled and its new instances have no measurements, so equal traffic is assumed.
        rows = np.broadcast_to(np.float64(rows.sum() / (n * m)), (n, m))
    found = factors(rows)
    scale = 1.0 / cycle_s
    x, z = (None, None) if found is None else (found[0] * scale, found[1])
    return Block(source, target, rows, scale, x, z)


def topology_arrays(
    now: Snapshot, demand: Demand, cluster: ClusterArrays, *, by_level: bool = True
) -> list[TopologyArrays]:
    """Every topology, in the order in which they are served: by level, then as the snapshot lists them.

    by_level False: in order of submission, which is the snapshot's; Storm's own schedulers have no levels.
    """
    demands = {(d.topology, d.operator): d for d in demand.operators}
    traffic: dict[str, list[EdgeTraffic]] = {}
    for edge in now.traffic:
        traffic.setdefault(edge.topology, []).append(edge)
    served = sorted(now.topologies, key=lambda t: t.level) if by_level else now.topologies
    return [_arrays(t, k, now, demands, traffic.get(t.name, []), cluster) for k, t in enumerate(served)]


def _arrays(
    topology: Topology,
    number: int,
    now: Snapshot,
    demands: Mapping[tuple[str, str], OperatorDemand],
    traffic: list[EdgeTraffic],
    cluster: ClusterArrays,
) -> TopologyArrays:
    asked = [demands.get((topology.name, o.name)) for o in topology.operators]
    counts = np.array(
        [o.parallelism if d is None else d.parallelism for o, d in zip(topology.operators, asked, strict=True)],
        dtype=np.int64,
    )
    start = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    instances: list[Instance] = []
    cpu = np.zeros(int(counts.sum()))
    for o, d, first, count in zip(topology.operators, asked, start.tolist(), counts.tolist(), strict=True):
        instances += [Instance(topology.name, o.name, k) for k in range(count)]
        cpu[first : first + count] = (o.cpu_pct or 0.0) if d is None else d.shares_pct
    operator_of = np.repeat(np.arange(len(counts)), counts)
    operators = topology.operators
    memory = np.array([o.memory_mb or 0.0 for o in operators], dtype=np.float64)[operator_of]
    state = np.array([o.state_mb for o in operators], dtype=np.float64)[operator_of]
    stateful = np.array([o.stateful for o in operators], dtype=np.bool_)[operator_of]
    mine = np.zeros(len(cluster.names), dtype=np.bool_)
    mine[cluster.allowed(topology.name)] = True
    get = now.placement.slots.get
    present = np.array([cluster.number(get(i)) for i in instances], dtype=np.int64)
    known = present >= 0
    present[known] = np.where(mine[cluster.slot_node[present[known]]], present[known], -1)
    starts = {o.name: (int(f), int(c)) for o, f, c in zip(operators, start, counts, strict=True)}
    blocks = tuple(_block(e, now.cycle_s, starts) for e in traffic if e.source in starts and e.target in starts)
    return TopologyArrays(
        topology, number, operators, counts, start, tuple(instances), operator_of,
        cpu, memory, state, stateful, present, blocks,
    )  # fmt: skip
