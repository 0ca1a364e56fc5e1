"""What is told of CPU and nodes in a run that nobody steers after its first placement. It only adds up."""

from collections.abc import Iterable

from barograph.experiments.report import ActionReport
from barograph.experiments.steering import Steered
from barograph.model import Snapshot

NAME = "even"
_CORE_PCT = 100.0


class Watched:
    """Takes what is seen each second. Unlimited instances are allotted a core, and a node never more than it has."""

    def __init__(self) -> None:
        self._seen_s = self._used_s = self._allotted_core_s = self._node_s = 0.0
        self._nodes_max = 0

    def take(self, now: Snapshot) -> None:
        homes: dict[str, int] = {}
        for slot in now.placement.slots.values():
            homes[slot.node] = homes.get(slot.node, 0) + 1
        given = {n.name: n.cpu_pct for n in now.nodes}
        pct = sum(min(_CORE_PCT * count, given.get(node, _CORE_PCT * count)) for node, count in homes.items())
        self._seen_s += now.cycle_s
        self._used_s += float(now.metrics.columns["cpu_s"].sum())
        self._allotted_core_s += now.cycle_s * pct / 100.0
        self._node_s += now.cycle_s * len(homes)
        self._nodes_max = max(self._nodes_max, len(homes))

    def told(self, seconds: float, actions: Iterable[ActionReport], whole: bool) -> Steered:
        """whole: whether all of the run was seen; another driver's part of it is not known."""
        did = [text for action in actions for text in action.did]
        moves, rescales = (sum(text.startswith(word) for text in did) for word in ("moved ", "scaled "))
        if not whole or self._seen_s <= 0:
            return Steered(NAME, None, None, None, None, moves, rescales)
        mean = self._allotted_core_s / self._seen_s
        nodes = self._node_s / self._seen_s
        return Steered(NAME, seconds * mean, self._used_s, nodes, self._nodes_max, moves, rescales)
