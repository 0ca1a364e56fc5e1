"""Which slot each executor has: it keeps its slot as long as it lives, and a new one takes the lowest free slot on its
node."""

from collections.abc import Iterable, Mapping

from barograph.engines.spark.bridge.reports import Executor
from barograph.model import Node, Slot


class WorkerSlots:
    """nodes: the node of each known host; other nodes are named by their host."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = dict(nodes)
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
                node = self._node(executor).name
                taken = {s.index for s in self.of.values() if s.node == node}
                self._homes[executor.id] = node
                self.of[executor.id] = Slot(node, next(i for i in range(len(taken) + 1) if i not in taken))

    def where(self, executor: str) -> str:
        """An executor and its node for people to read, also if it is gone."""
        node = self._homes.get(executor)
        return f"executor {executor}" + (f" on {node}" if node else "")

    def _node(self, executor: Executor) -> Node:
        found = self._nodes.get(executor.host)
        if found is None:
            # An unknown host: Spark itself assumes a core for each seat.
            found = self._nodes[executor.host] = Node(executor.host, 100.0 * executor.seats, seats=executor.seats)
        return found
