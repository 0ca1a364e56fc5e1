"""Which slot each executor has, and how large nodes are.

An executor keeps its slot as long as it lives, and a new one takes the lowest free slot on its node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from barograph.engines.spark.bridge.reports import Executor
from barograph.model import Node, Slot


class WorkerSlots:
    """nodes: the node of each known host; other nodes are named by their host."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = dict(nodes)
        self._declared = frozenset(nodes)
        self._homes: dict[str, str] = {}  # every executor so far -> its node
        self.of: dict[str, Slot] = {}
        """Executor -> its slot."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every known node, including dead and released ones."""
        return tuple(sorted(self._nodes.values(), key=lambda n: n.name))

    def assign(self, executors: Iterable[Executor]) -> None:
        """These are the live ones now."""
        live = list(executors)
        alive = {e.id for e in live}
        self.of = {e: s for e, s in self.of.items() if e in alive}
        for executor in live:
            if executor.id not in self.of:
                node = self._name(executor.host)
                taken = {s.index for s in self.of.values() if s.node == node}
                self._homes[executor.id] = node
                self.of[executor.id] = Slot(node, next(i for i in range(len(taken) + 1) if i not in taken))
        for host in {e.host for e in live}:
            self._nodes[host] = self._sized(host, [e for e in live if e.host == host])

    def where(self, executor: str) -> str:
        """An executor and its node for people to read, also if it is gone."""
        node = self._homes.get(executor)
        return f"executor {executor}" + (f" on {node}" if node else "")

    def _name(self, host: str) -> str:
        return self._nodes[host].name if host in self._nodes else host

    def _sized(self, host: str, there: Sequence[Executor]) -> Node:
        """As large as its live executors together; of different ones, seats are the mean. What is declared of a node's
        CPU holds; of an unknown host Spark itself takes the cores of its executors for those of the machine."""
        cores, seats = sum(e.cores for e in there), sum(e.seats for e in there) // len(there)
        slots = 1 + max(self.of[e.id].index for e in there)
        if host in self._declared:
            known = self._nodes[host]
            return replace(known, slots=max(known.slots, slots), seats=seats)
        return Node(host, 100.0 * cores, slots, seats)
