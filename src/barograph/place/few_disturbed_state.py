"""One topology's stateful and stateless workers, node by node: what they hold, what is disturbed, what is reserved.

The bookkeeping of the few-disturbed placer; it decides nothing.
"""

import numpy as np
from numpy.typing import NDArray

from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Real, Whole, summed
from barograph.place.support.topology_arrays import TopologyArrays

SL, SF = 0, 1
KINDS = (SL, SF)


class FewDisturbedState:
    """held[kind][n]: D of the worker of that kind on node n, disturbed workers not counted. capacity: R_n."""

    def __init__(self, cluster: ClusterArrays, arrays: TopologyArrays) -> None:
        self.cluster, self.arrays = cluster, arrays
        nodes = len(cluster.names)
        self.mine = cluster.allowed(arrays.topology.name)
        self.node: Whole = np.where(arrays.present >= 0, cluster.slot_node[arrays.present], -1)
        self.kind_of = arrays.stateful.astype(np.int64)
        placed = self.node >= 0
        self.held: list[Real] = []
        self.count: list[Whole] = []
        for kind in KINDS:
            of_kind = placed & (self.kind_of == kind)
            self.held.append(summed(self.node[of_kind], arrays.cpu_pct[of_kind], nodes))
            self.count.append(np.bincount(self.node[of_kind], minlength=nodes))
        own = summed(self.node[placed], arrays.cpu_pct[placed], nodes)
        self.capacity: Real = cluster.cpu_left + own
        self.disturbed = [np.zeros(nodes, dtype=np.bool_) for _ in KINDS]
        self.reserved = [np.zeros(nodes) for _ in KINDS]
        self.usable = [np.zeros(nodes, dtype=np.bool_) for _ in KINDS]
        self.reserved_total = [0.0, 0.0]
        self.wanted = [float(arrays.cpu_pct[~placed & (self.kind_of == k)].sum()) for k in KINDS]
        self._was_used = (self.count[SL] + self.count[SF]) > 0
        self._release_own_seats()

    def _release_own_seats(self) -> None:
        """Free the topology's seats; they are booked again when every instance has a node."""
        cluster = self.cluster
        for slot in self.arrays.present[self.arrays.present >= 0].tolist():
            cluster.seats_left[slot] += 1
        cluster.cpu_left[:] = self.capacity
        if not cluster.shared:
            cluster.owner[cluster.owner == self.arrays.number] = -1
        limit = np.where(cluster.owner == -1, cluster.seats_left, 0)
        nodes = len(cluster.names)
        self._all_seats = np.bincount(cluster.slot_node, weights=limit, minlength=nodes).astype(np.int64)
        self._open_slots = np.bincount(cluster.slot_node[limit > 0], minlength=nodes)
        self._largest = np.zeros(nodes, dtype=np.int64)
        np.maximum.at(self._largest, cluster.slot_node, limit)

    def used_nodes(self) -> Whole:
        found: Whole = self.mine[self._was_used[self.mine]]
        return found

    def occupied_nodes(self) -> Whole:
        """Nodes that have an instance now; a used node may have lost all of its instances to a disturbance."""
        found: Whole = self.mine[(self.count[SL] + self.count[SF])[self.mine] > 0]
        return found

    def free_nodes(self) -> Whole:
        found: Whole = self.mine[~self._was_used[self.mine]]
        return found

    def kind(self, i: int) -> int:
        return int(self.kind_of[i])

    def members(self, n: int, kind: int) -> list[int]:
        return np.flatnonzero((self.node == n) & (self.kind_of == kind)).tolist()

    def load(self, n: int) -> float:
        return float(self.held[SL][n] + self.held[SF][n])

    def remainder(self, n: int) -> float:
        return float(self.capacity[n] - self.load(n))

    def seats(self, nodes: Whole, kind: int) -> Whole:
        """Seats left for a kind: if slots belong to one topology, each kind has its own slot; else both share all."""
        if self.cluster.shared:
            return self._all_seats[nodes] - self.count[SL][nodes] - self.count[SF][nodes]
        enough = self._open_slots[nodes] > (self.count[1 - kind][nodes] > 0)
        return np.where(enough, self._largest[nodes] - self.count[kind][nodes], 0)

    def harmless(self, nodes: Whole, kind: int) -> NDArray[np.bool_]:
        """Where instances of that kind disturb no worker: there is none of the kind, or it is disturbed already."""
        found: NDArray[np.bool_] = (self.count[kind][nodes] == 0) | self.disturbed[kind][nodes]
        return found

    def disturb(self, n: int, kind: int) -> None:
        """Release a worker: its instances are to be placed again."""
        if self.disturbed[kind][n]:
            return
        self.disturbed[kind][n] = True
        members = self.members(n, kind)
        self.wanted[kind] += float(self.arrays.cpu_pct[members].sum())
        self.held[kind][n], self.count[kind][n] = 0.0, 0
        self.node[members] = -1

    def reserve(self, n: int, kind: int, need: float) -> None:
        """Reserve up to ``need`` of a node's room for a kind; this disturbs a worker of that kind on the node."""
        room = self.remainder(n) - self.reserved[SL][n] - self.reserved[SF][n]
        take = min(need, room)
        if take <= HAIR or self.seats(np.array([n]), kind)[0] <= 0:
            return
        if not self.harmless(np.array([n]), kind)[0]:
            own = float(self.held[kind][n])
            self.disturb(n, kind)
            take += own
        self.reserved[kind][n] += take
        self.reserved_total[kind] += take
        self.usable[kind][n] = True

    def first(self, nodes: Whole, kind: int, cpu: float, keep_reserve: bool = True) -> int:
        """The first node with that much CPU left for a kind, without what the other kind has reserved; or -1."""
        room = self.capacity[nodes] - self.held[SL][nodes] - self.held[SF][nodes]
        if keep_reserve:
            room = room - self.reserved[1 - kind][nodes]
        found = nodes[(room + HAIR >= cpu) & (self.seats(nodes, kind) > 0)]
        return int(found[0]) if len(found) else -1

    def put(self, i: int, n: int) -> None:
        kind, cpu = self.kind(i), float(self.arrays.cpu_pct[i])
        old = int(self.node[i])
        if old >= 0:
            self.held[kind][old] -= cpu
            self.count[kind][old] -= 1
        self.node[i] = n
        self.held[kind][n] += cpu
        self.count[kind][n] += 1
        self.reserved[kind][n] = max(0.0, float(self.reserved[kind][n]) - cpu)
        self.usable[kind][n] = True
        self._was_used[n] = True
        if old >= 0 and self.count[SL][old] + self.count[SF][old] == 0:
            self._was_used[old] = False
            self.held[SL][old] = self.held[SF][old] = 0.0

    def breadth_first(self) -> list[int]:
        arrays = self.arrays
        reached = [o.name for o in arrays.topology.breadth_first]
        names = reached + [o.name for o in arrays.topology.operators if o.name not in set(reached)]
        positions = [arrays.operator_position(name) for name in names]
        return [i for k in positions for i in range(int(arrays.start[k]), int(arrays.start[k] + arrays.counts[k]))]

    def into_slots(self) -> Whole:
        """Book every instance: one that stays on its node stays in its worker, others join the worker of their kind.

        A node's stateful and stateless instances are in different workers if the node has two. Where they share one,
        the stateless ones move out of it: their move costs less.
        """
        cluster, arrays = self.cluster, self.arrays
        where = np.full(arrays.size, -1, dtype=np.int64)
        present_node = np.where(arrays.present >= 0, cluster.slot_node[arrays.present], -2)
        stays = (self.node >= 0) & (self.node == present_node)
        worker: dict[tuple[int, int], int] = {}
        for i in np.flatnonzero(stays & (self.kind_of == SF)).tolist():
            self._stay(i, where, worker)
        shared = {n: slot for (n, _), slot in worker.items() if self._another(n, slot)}
        for i in np.flatnonzero(stays & (self.kind_of == SL)).tolist():
            if shared.get(int(self.node[i])) != arrays.present[i]:
                self._stay(i, where, worker)
        for i in np.flatnonzero((self.node >= 0) & (where < 0)).tolist():
            n, kind = int(self.node[i]), self.kind(i)
            slot = worker.get((n, kind), -1)
            if slot < 0 or cluster.seats_left[slot] <= 0:
                slot = self._fresh(n, kind, worker.get((n, 1 - kind), -1))
            if slot >= 0:
                worker[n, kind] = where[i] = slot
                cluster.take(slot, arrays.number, float(arrays.cpu_pct[i]))
        return where

    def _stay(self, i: int, where: Whole, worker: dict[tuple[int, int], int]) -> None:
        slot = int(self.arrays.present[i])
        where[i] = slot
        worker.setdefault((int(self.node[i]), self.kind(i)), slot)
        self.cluster.take(slot, self.arrays.number, float(self.arrays.cpu_pct[i]))

    def _another(self, n: int, slot: int) -> bool:
        """Whether the node has a worker with a free seat besides this one."""
        return any(s != slot for s in self.cluster.open_to(self.arrays.number, self.cluster.slots_of(n)).tolist())

    def _fresh(self, n: int, kind: int, others: int) -> int:
        """A slot for a new worker of a kind, if possible not the other kind's.

        Where topologies share workers, stateless instances of all of them take the first and stateful ones the last;
        else an empty slot comes first.
        """
        cluster = self.cluster
        open_slots = cluster.open_to(self.arrays.number, cluster.slots_of(n)).tolist()
        if cluster.shared:
            return min(open_slots, key=lambda s: (s == others, -s if kind == SF else s), default=-1)
        return min(open_slots, key=lambda s: (s == others, s in cluster.held_now, s), default=-1)
