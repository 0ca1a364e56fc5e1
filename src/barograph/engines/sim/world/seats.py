"""Which workers are alive, and which instance has a seat in which of them. It decides nothing about time."""

from collections import Counter
from collections.abc import Iterable, Sequence

from barograph.engines.sim.world.changes import TopologyChange, assign_seats, moved
from barograph.model import Instance, Move, Node, Placement, Slot, Topology, Worker


class Seats:
    """workers: those alive, by slot. warm: (topology, operator, slot) where the operator's code has run before.

    complete: whether every placed instance is on a worker that is alive.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._seats = {n.name: n.seats or 1 for n in nodes}
        self._renewals = 0
        slots = sorted(Slot(n.name, i) for n in nodes for i in range(n.slots))
        self.workers = {s: self._worker(s) for s in slots}
        self.warm: set[tuple[str, str, Slot]] = set()
        self.complete = True
        self._of: dict[str, dict[Instance, Slot]] = {}
        self._taken: Counter[Slot] = Counter()

    def _worker(self, slot: Slot) -> Worker:
        return Worker(slot, f"executor-{slot.node}-{slot.index}-{self._renewals}", self._seats[slot.node])

    def of(self, topology: str) -> dict[Instance, Slot]:
        """Where the instances of a topology are; empty before it has seats."""
        return self._of.get(topology, {})

    def after(self, topology: Topology, change: TopologyChange) -> dict[Instance, Slot] | None:
        """Where the instances would be after the change; None where seats are missing. topology: as changed."""
        present = self.of(topology.name)
        others = self._taken - Counter(present.values()) if present else self._taken
        return assign_seats(topology, present, others, change, self.workers)

    def moves(self, topology: Topology, change: TopologyChange) -> list[Move]:
        return moved(self.of(topology.name), self.after(topology, change) or {})

    def take(self, topology: str, slots: dict[Instance, Slot]) -> None:
        """From now on the instances of the topology are there."""
        self._taken.update(slots.values())
        for slot in self.of(topology).values():
            self._taken[slot] -= 1
            if not self._taken[slot]:
                del self._taken[slot]
        self._of[topology] = slots
        self.warm |= {(i.topology, i.operator, s) for i, s in slots.items()}

    def check(self) -> None:
        """Bring ``complete`` up to date."""
        self.complete = all(s in self.workers for s in self._taken)

    def placement(self, topologies: Iterable[Topology]) -> Placement:
        return Placement({i: s for t in topologies for i, s in self.of(t.name).items()})

    def lose(self, node: str, index: int | None) -> list[Slot]:
        """The worker of that slot dies, or (None) every worker of the node."""
        dead = [s for s in self.workers if s.node == node and index in (None, s.index)]
        for each in dead:
            del self.workers[each]
            self.warm = {w for w in self.warm if w[2] != each}
        self.complete = False
        return dead

    def renew(self, slot: Slot) -> None:
        """A new worker in the slot, instead of one that may be there."""
        self._renewals += 1
        self.workers[slot] = self._worker(slot)
        self.workers = dict(sorted(self.workers.items()))
