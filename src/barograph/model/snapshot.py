"""What an engine saw: the cluster, what runs where, and the metrics of the last cycle."""

from dataclasses import dataclass, field
from functools import cached_property

from barograph.model.checks import BadInput, require, require_number, require_positive, require_unique, require_whole
from barograph.model.cluster import Node, Slot, Worker
from barograph.model.metrics import EdgeTraffic, Metrics, NodeMetrics, TopologyMetrics
from barograph.model.placement import Placement
from barograph.model.topology import Topology


@dataclass(frozen=True)
class Snapshot:
    """The cluster at ``at_s``, and the ``cycle_s`` seconds before it.

    version counts the changes of the cluster and of the topologies: a plan made from an older version is refused.
    shared_workers: whether one worker may hold instances of several topologies (Spark: yes, Storm: no).
    asleep: nodes that were released. Nothing can be placed on them; they are among ``nodes`` again once fetched.
    application: which one was observed; cycles of another one say nothing about it. Empty where there is only one.
    """

    at_s: float
    cycle_s: float
    nodes: tuple[Node, ...]
    topologies: tuple[Topology, ...]
    workers: tuple[Worker, ...] = ()
    placement: Placement = field(default_factory=Placement)
    metrics: Metrics = field(default_factory=lambda: Metrics(()))
    traffic: tuple[EdgeTraffic, ...] = ()
    node_metrics: tuple[NodeMetrics, ...] = ()
    topology_metrics: tuple[TopologyMetrics, ...] = ()
    version: int = 0
    shared_workers: bool = True
    asleep: tuple[Node, ...] = ()
    application: str = ""

    def __post_init__(self) -> None:
        require_number("snapshot.at_s", self.at_s)
        require_positive("snapshot.cycle_s", self.cycle_s)
        require_whole("snapshot.version", self.version)
        require_unique("snapshot.nodes", (n.name for n in (*self.nodes, *self.asleep)))
        require_unique("snapshot.topologies", (t.name for t in self.topologies))
        require_unique("snapshot.workers", (w.slot for w in self.workers))
        for worker in self.workers:
            require(worker.slot.node in self._nodes, f"worker {worker.slot} is on the unknown node {worker.slot.node}")

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {n.name: n for n in self.nodes}

    @cached_property
    def _topologies(self) -> dict[str, Topology]:
        return {t.name: t for t in self.topologies}

    @cached_property
    def _workers(self) -> dict[Slot, Worker]:
        return {w.slot: w for w in self.workers}

    @cached_property
    def cluster_cpu_pct(self) -> float:
        """What all nodes give together."""
        return sum(n.cpu_pct for n in self.nodes)

    @cached_property
    def largest_node_pct(self) -> float:
        """What the largest node gives; a core where there is none."""
        return max((n.cpu_pct for n in self.nodes), default=100.0)

    @cached_property
    def sent_between(self) -> dict[tuple[str, str, str], float]:
        """(topology, operator, operator it sends to) -> rows in the cycle, where the engine reports traffic."""
        found: dict[tuple[str, str, str], float] = {}
        for edge in self.traffic:
            key = (edge.topology, edge.source, edge.target)
            found[key] = found.get(key, 0.0) + edge.total
        return found

    def node(self, name: str) -> Node:
        found = self._nodes.get(name)
        if found is None:
            raise BadInput(f"there is no node {name!r}; there are {', '.join(self._nodes) or 'none'}")
        return found

    def runs(self, topology: str) -> bool:
        """Whether a topology of this name is there."""
        return topology in self._topologies

    def topology(self, name: str) -> Topology:
        found = self._topologies.get(name)
        if found is None:
            raise BadInput(f"there is no topology {name!r}; there are {', '.join(self._topologies) or 'none'}")
        return found

    def worker(self, slot: Slot) -> Worker | None:
        """The live worker in a slot, None where there is none now."""
        return self._workers.get(slot)
