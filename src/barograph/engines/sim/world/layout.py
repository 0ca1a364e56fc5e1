"""The cluster as arrays: every instance is a number, every operator a range of numbers.

A layout never changes; a plan that changes the placement or a parallelism makes a new one.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.engines.sim.scenario.definition import Flow, SimulatedTopology, Work
from barograph.model import Grouping, Instance, Node, Placement, Slot, Topology

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
SAME_WORKER, SAME_NODE, OTHER_NODE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class EdgePart:
    """weights[j]: the share of its rows that goes to instance j of the target; of ``all``, copies instead.

    home[i]: where rows with sender i's constant key go; of ``direct``, all its rows.
    """

    index: int
    source: int
    target: int
    grouping: Grouping
    selectivity: float
    weights: Floats
    home: Ints
    sticky: float = 0.0

    @property
    def copies(self) -> float:
        """Rows sent for each row executed upstream."""
        return self.selectivity * (len(self.weights) if self.grouping is Grouping.ALL else 1)


@dataclass(frozen=True, eq=False)
class OperatorPart:
    """One operator: instances start .. start + n, and its place in the graph. depth: the longest path from a source."""

    index: int
    topology: int
    name: str
    start: int
    n: int
    work: Work
    depth: int
    outputs: tuple[int, ...]

    @property
    def span(self) -> slice:
        return slice(self.start, self.start + self.n)

    @property
    def is_source(self) -> bool:
        return self.work.load is not None

    @property
    def is_sink(self) -> bool:
        return not self.outputs


class WorldLayout:
    def __init__(
        self,
        workloads: Sequence[SimulatedTopology],
        topologies: Sequence[Topology],
        placement: Placement,
        nodes: Sequence[Node],
        seed: int,
        before: "WorldLayout | None" = None,
    ) -> None:
        self.topologies = tuple(topologies)
        self.placement = placement
        self.instances = self._all_instances(before)
        self.operators: list[OperatorPart] = []
        self.edges: list[EdgePart] = []
        start = 0
        for t, (workload, topology) in enumerate(zip(workloads, topologies, strict=True)):
            start = self._add(t, workload, topology, start, seed)
        self.order = sorted(range(len(self.operators)), key=lambda o: (self.operators[o].depth, o))
        self.topology_of = np.empty(start, dtype=np.intp)
        self.is_source = np.empty(start, dtype=np.bool_)
        for operator in self.operators:
            self.topology_of[operator.span] = operator.topology
            self.is_source[operator.span] = operator.is_source
        self._house(nodes)
        clock = np.array([n.clock_mhz / 1000.0 for n in nodes])
        self.clock: Floats = np.where(self.node_of >= 0, clock[self.node_of], 1.0)
        self.gain = self._gains()
        self._apart: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_], Floats, Floats]] = {}

    def _all_instances(self, before: "WorldLayout | None") -> tuple[Instance, ...]:
        """Every instance in order; those of an unchanged topology are taken from the layout before."""
        self._of_topology: list[tuple[Instance, ...]] = []
        for t, topology in enumerate(self.topologies):
            same = before is not None and before.topologies[t] is topology
            self._of_topology.append(before._of_topology[t] if before and same else tuple(topology.instances()))
        return tuple(i for some in self._of_topology for i in some)

    def _gains(self) -> list[float]:
        """Rows at the sinks that one row before each operator stands for."""
        gain = [0.0] * len(self.operators)
        for o in reversed(self.order):
            part = self.operators[o]
            edges = [self.edges[e] for e in part.outputs]
            gain[o] = sum(e.copies * gain[e.target] for e in edges) if edges else 1.0
        return gain

    def _add(self, t: int, workload: SimulatedTopology, topology: Topology, start: int, seed: int) -> int:
        first = len(self.operators)
        number = {o.name: first + i for i, o in enumerate(topology.operators)}
        depth: dict[str, int] = {}
        for operator in topology.order:
            depth[operator.name] = 1 + max((depth[p] for p in topology.parents(operator.name)), default=-1)
        outputs: dict[str, list[int]] = {o.name: [] for o in topology.operators}
        for edge, flow in zip(topology.edges, workload.flow, strict=True):
            if edge.feedback:
                continue  # a loop's rows are part of what its operators cost
            outputs[edge.source].append(len(self.edges))
            n = topology.operator(edge.target).parallelism
            mixed = zlib.crc32(f"{topology.name}/{edge.source}/{edge.target}".encode())
            weights = _weights(edge.grouping, flow, n, np.random.default_rng([seed, mixed]))
            senders = topology.operator(edge.source).parallelism
            sticky = flow.sticky if edge.grouping is Grouping.FIELDS else 0.0
            self.edges.append(
                EdgePart(
                    len(self.edges),
                    number[edge.source],
                    number[edge.target],
                    edge.grouping,
                    flow.selectivity,
                    weights,
                    _homes(senders, n, np.random.default_rng([seed, mixed, 3]) if sticky else None),
                    sticky,
                )
            )
        for operator in topology.operators:
            self.operators.append(
                OperatorPart(
                    number[operator.name],
                    t,
                    operator.name,
                    start,
                    operator.parallelism,
                    workload.work[operator.name],
                    depth[operator.name],
                    tuple(outputs[operator.name]),
                )
            )
            start += operator.parallelism
        return start

    def _house(self, nodes: Sequence[Node]) -> None:
        """node_of, worker_of: numbers of each instance's node and worker, -1 where it has none. workers: all slots."""
        node_number = {n.name: i for i, n in enumerate(nodes)}
        first_slot = np.concatenate([[0], np.cumsum([n.slots for n in nodes])])
        self.workers = int(first_slot[-1])
        slots: Mapping[Instance, Slot] = self.placement.slots
        self.node_of = np.full(len(self.instances), -1, dtype=np.intp)
        self.worker_of = np.full(len(self.instances), -1, dtype=np.intp)
        for position, instance in enumerate(self.instances):
            slot = slots.get(instance)
            if slot is not None:
                node = node_number[slot.node]
                self.node_of[position] = node
                self.worker_of[position] = first_slot[node] + slot.index

    def crossing(self, edge: EdgePart, rows: Floats) -> tuple[float, float]:
        """Of these rows of an edge, those between nodes and those between workers.

        rows: senders by targets; or one row, what each target got from all senders alike.
        """
        if edge.index not in self._apart:
            distance = self.distance(edge)
            far, other = distance == OTHER_NODE, distance != SAME_WORKER
            self._apart[edge.index] = (far, other, far.mean(axis=0), other.mean(axis=0))
        far, other, far_part, other_part = self._apart[edge.index]
        if rows.shape[0] == far.shape[0]:
            return float(rows[far].sum()), float(rows[other].sum())
        return float(rows[0] @ far_part), float(rows[0] @ other_part)

    def distance(self, edge: EdgePart) -> NDArray[np.intp]:
        """For every pair of the edge: same worker, same node, or other node."""
        a, b = self.operators[edge.source].span, self.operators[edge.target].span
        same_node = self.node_of[a, None] == self.node_of[None, b]
        same_worker = self.worker_of[a, None] == self.worker_of[None, b]
        found: NDArray[np.intp] = np.where(same_worker, SAME_WORKER, np.where(same_node, SAME_NODE, OTHER_NODE))
        return found


def _homes(senders: int, targets: int, hashed: np.random.Generator | None) -> Ints:
    """A constant key is hashed, so several senders may share a target; ``direct`` takes turns."""
    if hashed is None:
        return np.arange(senders, dtype=np.intp) % targets
    return hashed.integers(0, targets, senders).astype(np.intp)


def _weights(grouping: Grouping, flow: Flow, n: int, rng: np.random.Generator) -> Floats:
    if grouping is Grouping.GLOBAL:
        return np.asarray(np.arange(n) == 0, dtype=np.float64)
    if grouping is Grouping.ALL:
        return np.ones(n)
    if grouping is not Grouping.FIELDS:
        return np.full(n, 1.0 / n)
    keys = flow.keys or n
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -flow.skew
    weights = weights / weights.sum()
    if flow.keys == 0:
        return np.asarray(rng.permutation(weights))
    instance = rng.integers(0, 2**31, keys) % n
    return np.bincount(instance, weights, n).astype(np.float64)
