"""Which slot each executor has, and how large nodes are.

A node is a host, and a slot is a number on it. An executor keeps its slot as long as it lives, and a new one takes the
lowest free slot of its node: the slot of a lost executor goes to the one that replaces it, and orders for it hold
again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from barograph.engines.spark.bridge.reports import Executor
from barograph.model import Node, Slot

POD = "pod"


class WorkerSlots:
    """nodes: the node of each known host; other nodes are named by their host.

    pods: each executor has a host of its own, with a name that is never used again (Kubernetes). Then nodes are
    numbered, and a new executor takes the lowest number that is free."""

    def __init__(self, nodes: Mapping[str, Node], pods: bool = False) -> None:
        self._nodes = {n.name: n for n in nodes.values()}
        self._declared = {host: n.name for host, n in nodes.items()}
        self._pods = pods
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
                taken = set(self.of.values())
                node = self._name(executor.host, {s.node for s in taken})
                self._homes[executor.id] = node
                self.of[executor.id] = next(slot for k in count() if (slot := Slot(node, k)) not in taken)
        for node in {s.node for s in self.of.values()}:
            self._nodes[node] = self._sized(node, [e for e in live if self.of[e.id].node == node])

    def where(self, executor: str) -> str:
        """An executor and its node for people to read, also if it is gone."""
        node = self._homes.get(executor)
        return f"executor {executor}" + (f" on {node}" if node else "")

    def _name(self, host: str, used: set[str]) -> str:
        if host in self._declared or not self._pods:
            return self._declared.get(host, host)
        return next(name for k in count() if (name := f"{POD}-{k}") not in used)

    def _sized(self, node: str, there: Sequence[Executor]) -> Node:
        """As large as its live executors may use together; of different ones, seats are the mean. What is declared of a
        node's CPU holds."""
        cores, seats = _capacity_cores(there), sum(e.seats for e in there) // len(there)
        slots = 1 + max(self.of[e.id].index for e in there)
        if node in self._declared.values():
            known = self._nodes[node]
            return replace(known, slots=max(known.slots, slots), seats=seats)
        return Node(node, 100.0 * cores, slots, seats)


def _capacity_cores(there: Sequence[Executor]) -> float:
    """The CPU of a host's executors as they report it: executors in one control group share what it may use, and all
    together have the host's processors at most. Until all have reported, Spark's count of their cores is taken."""
    if not all(e.allowed_cores for e in there):
        return float(sum(e.cores for e in there))
    groups = {e.group: min(e.group_cores or e.allowed_cores, e.allowed_cores) for e in there}
    return min(sum(groups.values()), max(e.allowed_cores for e in there))
