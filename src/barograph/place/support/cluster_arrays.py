"""The cluster as arrays while a placement is being made: what each node and slot has left, and which topology holds it.

It books and counts; it decides nothing. Every placer makes a new ClusterArrays for each decision, so placers stay
pure. Slots are numbered node after node, so the slots of node n are ``first[n] .. first[n + 1] - 1``.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from barograph.model import Allotment, Instance, Placement, Slot, Snapshot

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

NO_LIMIT = 1 << 40  # seats of a worker without a limit; more than the instances of any cluster
HAIR = 1e-6  # tolerance for sums of floats: only more than this above the capacity is too much


def summed(where: Whole, weights: Real, count: int) -> Real:
    """The sum of weights at each of ``count`` places."""
    return np.bincount(where, weights=weights, minlength=count).astype(np.float64)


class ClusterArrays:
    """cpu_left and memory_left may become negative with placers that ignore these limits; seats_left never does."""

    def __init__(self, now: Snapshot, allotment: Allotment) -> None:
        self.now = now
        self.allotment = allotment
        self.shared = now.shared_workers
        self.names = [n.name for n in now.nodes]
        self.node_at = {name: n for n, name in enumerate(self.names)}
        self.cpu_pct = np.array([n.cpu_pct for n in now.nodes], dtype=np.float64)
        self.memory_mb = np.array([np.inf if n.memory_mb is None else n.memory_mb for n in now.nodes], dtype=np.float64)
        self.clock_mhz = np.array([n.clock_mhz for n in now.nodes], dtype=np.float64)
        self.cpu_left, self.memory_left = self.cpu_pct.copy(), self.memory_mb.copy()
        self._number_slots()
        self.owner = np.full(len(self.slot_node), -1, dtype=np.int64)
        self.claimed = np.zeros(
            len(self.slot_node), dtype=np.int64
        )  # seats claimed, while running instances are adopted
        self._slots: dict[int, Slot] = {}

    def _number_slots(self) -> None:
        """Live workers if workers are shared; else every slot, since a slot's worker is started when it is used."""
        now = self.now
        if self.shared:
            live = sorted((self.node_at[w.slot.node], w.slot.index, w.seats) for w in now.workers)
            nodes, index, seats = ([row[c] for row in live] for c in range(3))
            counts = np.bincount(np.array(nodes, dtype=np.int64), minlength=len(self.names))
        else:
            counts = np.array([n.slots for n in now.nodes], dtype=np.int64)
            nodes = np.repeat(np.arange(len(self.names)), counts).tolist()
            index = [k for n in now.nodes for k in range(n.slots)]
            seats = [NO_LIMIT if n.seats is None else n.seats for n in now.nodes for _ in range(n.slots)]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.slot_node: Whole = np.array(nodes, dtype=np.int64)
        self.slot_index: Whole = np.array(index, dtype=np.int64)
        self.seats_left: Whole = np.array(seats, dtype=np.int64)

    @cached_property
    def _slot_at(self) -> dict[tuple[str, int], int]:
        where = zip(self.slot_node.tolist(), self.slot_index.tolist(), strict=True)
        return {(self.names[n], k): s for s, (n, k) in enumerate(where)}

    def number(self, slot: Slot | None) -> int:
        """The slot's number, -1 if there is no such slot now (its node or worker is lost)."""
        return -1 if slot is None else self._slot_at.get((slot.node, slot.index), -1)

    @cached_property
    def held_now(self) -> frozenset[int]:
        """Slots in which something runs at present."""
        return frozenset(self.number(s) for s in set(self.now.placement.slots.values()))

    def slot(self, number: int) -> Slot:
        found = self._slots.get(number)
        if found is None:
            found = Slot(self.names[int(self.slot_node[number])], int(self.slot_index[number]))
            self._slots[number] = found
        return found

    def slots_of(self, node: int) -> range:
        return range(int(self.first[node]), int(self.first[node + 1]))

    def allowed(self, topology: str) -> Whole:
        """The nodes a topology may use, in the cluster's order."""
        if topology in self.allotment.starved:
            return np.zeros(0, dtype=np.int64)
        named = self.allotment.nodes.get(topology)
        if named is not None:
            mine = set(named)
            return np.array([n for n, name in enumerate(self.names) if name in mine], dtype=np.int64)
        return self._common

    @cached_property
    def _common(self) -> Whole:
        taken = {name for nodes in self.allotment.nodes.values() for name in nodes}
        return np.array([n for n, name in enumerate(self.names) if name not in taken], dtype=np.int64)

    def open_to(self, topology: int, slots: Whole | Sequence[int]) -> Whole:
        """The slots in which the topology may have one more instance."""
        slots = np.asarray(slots, dtype=np.int64)
        owners = self.owner[slots]
        found: Whole = slots[((owners == -1) | (owners == topology)) & (self.seats_left[slots] > 0)]
        return found

    def take(self, slot: int, topology: int, cpu_pct: float = 0.0, memory_mb: float = 0.0, count: int = 1) -> None:
        """Book ``count`` instances in a slot; cpu and memory are their sum."""
        node = self.slot_node[slot]
        self.seats_left[slot] -= count
        self.cpu_left[node] -= cpu_pct
        self.memory_left[node] -= memory_mb
        if not self.shared:
            self.owner[slot] = topology

    def vacate(self, slot: int) -> None:
        """The slot has no instance any more."""
        self.owner[slot] = -1

    def is_fresh(self, slot: int) -> bool:
        """Whether a topology without a worker in the slot could start one there."""
        return bool(self.owner[slot] == -1 and self.seats_left[slot] > 0)

    def fresh_slots(self) -> Whole:
        """How many such slots each node has."""
        fresh = (self.owner == -1) & (self.seats_left > 0)
        return np.bincount(self.slot_node[fresh], minlength=len(self.names))


def to_placement(cluster: ClusterArrays, parts: Sequence[tuple[Sequence[Instance], Whole]]) -> Placement:
    """Instances and the slot number of each (-1: none), topology after topology, as a value."""
    slots: dict[Instance, Slot] = {}
    for instances, where in parts:
        for instance, number in zip(instances, where.tolist(), strict=True):
            if number >= 0:
                slots[instance] = cluster.slot(number)
    return Placement(slots)
