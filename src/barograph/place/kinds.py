"""One topology's stateful and stateless workers, node by node: what they hold, what is disturbed, what is reserved.

The bookkeeping of the few-disturbed placer; it decides nothing.
"""

import numpy as np
from numpy.typing import NDArray

from barograph.place.board import HAIR, Board, Real, Whole, summed
from barograph.place.crew import Crew

SL, SF = 0, 1
KINDS = (SL, SF)


class Kinds:
    """held[kind][n]: D of the worker of that kind on node n, disturbed workers not counted. capacity: R_n."""

    def __init__(self, board: Board, crew: Crew) -> None:
        self.board, self.crew = board, crew
        nodes = len(board.names)
        self.mine = board.allowed(crew.topology.name)
        self.node: Whole = np.where(crew.present >= 0, board.slot_node[crew.present], -1)
        self.kind_of = crew.stateful.astype(np.int64)
        placed = self.node >= 0
        self.held: list[Real] = []
        self.count: list[Whole] = []
        for kind in KINDS:
            of_kind = placed & (self.kind_of == kind)
            self.held.append(summed(self.node[of_kind], crew.cpu_pct[of_kind], nodes))
            self.count.append(np.bincount(self.node[of_kind], minlength=nodes))
        own = summed(self.node[placed], crew.cpu_pct[placed], nodes)
        self.capacity: Real = board.cpu_left + own
        self.disturbed = [np.zeros(nodes, dtype=np.bool_) for _ in KINDS]
        self.reserved = [np.zeros(nodes) for _ in KINDS]
        self.usable = [np.zeros(nodes, dtype=np.bool_) for _ in KINDS]
        self.reserved_total = [0.0, 0.0]
        self.wanted = [float(crew.cpu_pct[~placed & (self.kind_of == k)].sum()) for k in KINDS]
        self._was_used = (self.count[SL] + self.count[SF]) > 0
        self._release_own_seats()

    def _release_own_seats(self) -> None:
        """Give the topology's seats back to the board; they are booked again when every instance has a node."""
        board = self.board
        for slot in self.crew.present[self.crew.present >= 0].tolist():
            board.seats_left[slot] += 1
        board.cpu_left[:] = self.capacity
        if not board.shared:
            board.owner[board.owner == self.crew.number] = -1
        limit = np.where(board.owner == -1, board.seats_left, 0)
        nodes = len(board.names)
        self._all_seats = np.bincount(board.slot_node, weights=limit, minlength=nodes).astype(np.int64)
        self._open_slots = np.bincount(board.slot_node[limit > 0], minlength=nodes)
        self._largest = np.zeros(nodes, dtype=np.int64)
        np.maximum.at(self._largest, board.slot_node, limit)

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
        """Seats left for a kind: where slots belong to one topology each kind has a slot of its own, else all share."""
        if self.board.shared:
            return self._all_seats[nodes] - self.count[SL][nodes] - self.count[SF][nodes]
        enough = self._open_slots[nodes] > (self.count[1 - kind][nodes] > 0)
        return np.where(enough, self._largest[nodes] - self.count[kind][nodes], 0)

    def harmless(self, nodes: Whole, kind: int) -> NDArray[np.bool_]:
        """Where instances of that kind disturb no worker: there is none of the kind, or it is disturbed already."""
        found: NDArray[np.bool_] = (self.count[kind][nodes] == 0) | self.disturbed[kind][nodes]
        return found

    def disturb(self, n: int, kind: int) -> None:
        """Release a worker: its instances are to be placed anew."""
        if self.disturbed[kind][n]:
            return
        self.disturbed[kind][n] = True
        members = self.members(n, kind)
        self.wanted[kind] += float(self.crew.cpu_pct[members].sum())
        self.held[kind][n], self.count[kind][n] = 0.0, 0
        self.node[members] = -1

    def reserve(self, n: int, kind: int, need: float) -> None:
        """Take up to ``need`` of a node's room for a kind; a worker of that kind there is disturbed by it."""
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
        """The first of the nodes that holds so much more of a kind, less what the other kind has reserved; or -1."""
        room = self.capacity[nodes] - self.held[SL][nodes] - self.held[SF][nodes]
        if keep_reserve:
            room = room - self.reserved[1 - kind][nodes]
        found = nodes[(room + HAIR >= cpu) & (self.seats(nodes, kind) > 0)]
        return int(found[0]) if len(found) else -1

    def put(self, i: int, n: int) -> None:
        kind, cpu = self.kind(i), float(self.crew.cpu_pct[i])
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
        crew = self.crew
        reached = [o.name for o in crew.topology.breadth_first]
        names = reached + [o.name for o in crew.topology.operators if o.name not in set(reached)]
        positions = [crew.operator_position(name) for name in names]
        return [i for k in positions for i in range(int(crew.start[k]), int(crew.start[k] + crew.counts[k]))]

    def into_slots(self) -> Whole:
        """Book every instance: one that stays on its node stays in its worker, the others join their kind's there.

        A node's stateful and stateless instances are in different workers if the node has two. Where they share one,
        the stateless ones leave it: their move costs less.
        """
        board, crew = self.board, self.crew
        where = np.full(crew.size, -1, dtype=np.int64)
        present_node = np.where(crew.present >= 0, board.slot_node[crew.present], -2)
        stays = (self.node >= 0) & (self.node == present_node)
        worker: dict[tuple[int, int], int] = {}
        for i in np.flatnonzero(stays & (self.kind_of == SF)).tolist():
            self._stay(i, where, worker)
        shared = {n: slot for (n, _), slot in worker.items() if self._another(n, slot)}
        for i in np.flatnonzero(stays & (self.kind_of == SL)).tolist():
            if shared.get(int(self.node[i])) != crew.present[i]:
                self._stay(i, where, worker)
        for i in np.flatnonzero((self.node >= 0) & (where < 0)).tolist():
            n, kind = int(self.node[i]), self.kind(i)
            slot = worker.get((n, kind), -1)
            if slot < 0 or board.seats_left[slot] <= 0:
                slot = self._fresh(n, kind, worker.get((n, 1 - kind), -1))
            if slot >= 0:
                worker[n, kind] = where[i] = slot
                board.take(slot, crew.number, float(crew.cpu_pct[i]))
        return where

    def _stay(self, i: int, where: Whole, worker: dict[tuple[int, int], int]) -> None:
        slot = int(self.crew.present[i])
        where[i] = slot
        worker.setdefault((int(self.node[i]), self.kind(i)), slot)
        self.board.take(slot, self.crew.number, float(self.crew.cpu_pct[i]))

    def _another(self, n: int, slot: int) -> bool:
        """Whether the node has a worker with a free seat besides this one."""
        return any(s != slot for s in self.board.open_to(self.crew.number, self.board.slots_of(n)).tolist())

    def _fresh(self, n: int, kind: int, others: int) -> int:
        """A slot for a new worker of a kind, if possible not the other kind's.

        Where topologies share workers, stateless instances of all of them take the first and stateful ones the last;
        else an empty slot comes first.
        """
        board = self.board
        open_slots = board.open_to(self.crew.number, board.slots_of(n)).tolist()
        if board.shared:
            return min(open_slots, key=lambda s: (s == others, -s if kind == SF else s), default=-1)
        return min(open_slots, key=lambda s: (s == others, s in board.held_now, s), default=-1)
