"""One topology's workers on each node: a worker more where a heap limit, or the seats of a worker, ask for it.

Where workers are shared (Spark) they exist already, so their heap is theirs and only seats count.
"""

from collections import defaultdict

import numpy as np

from barograph.place.board import HAIR, Board, Real
from barograph.place.crew import Crew


class Heaps:
    """``largest[n]``: the most memory an instance may need to find a worker on node n; -1 where none has a seat."""

    def __init__(self, board: Board, crew: Crew) -> None:
        self.board, self.crew = board, crew
        limit = crew.topology.max_heap_mb
        self.limit = np.inf if board.shared or not limit else float(limit)
        self.used: dict[int, float] = defaultdict(float)  # slot -> heap of this topology's instances in it
        self.held: dict[int, int] = defaultdict(int)  # slot -> how many of its instances are in it
        self.mine: dict[int, list[int]] = defaultdict(list)  # node -> this topology's slots, in the order of use
        self.largest: Real = np.full(len(board.names), -1.0)
        self.refresh_all()

    def refresh_all(self) -> None:
        """Look again everywhere: other topologies have taken slots since."""
        board = self.board
        seats = (board.seats_left > 0) & (board.owner == -1)
        nodes = board.allowed(self.crew.topology.name)
        seats[[s for slots in self.mine.values() for s in slots]] = False
        self.fresh_count = np.bincount(board.slot_node[seats], minlength=len(board.names))
        self.largest[nodes] = np.where(self.fresh_count[nodes] > 0, self.limit, -1.0)
        for node in [n for n, slots in self.mine.items() if slots]:
            self.refresh(node)

    def adopt(self, slot: int, memory_mb: float) -> None:
        """An instance that is in a slot already."""
        node = int(self.board.slot_node[slot])
        if slot not in self.mine[node]:
            self.mine[node].append(slot)
            self.fresh_count[node] -= 1
        self.used[slot] += memory_mb
        self.held[slot] += 1

    def refresh(self, node: int) -> None:
        """Look again what a node's workers have room for."""
        if self.fresh_count[node] > 0:
            self.largest[node] = self.limit
            return
        seats = self.board.seats_left
        self.largest[node] = max((self.limit - self.used[s] for s in self.mine[node] if seats[s] > 0), default=-1.0)

    def _fresh(self, node: int) -> int | None:
        """A slot for one more worker: one nobody holds now if there is one."""
        board = self.board
        open_slots = [
            s
            for s in board.slots_of(node)
            if board.seats_left[s] > 0 and board.owner[s] == -1 and s not in self.mine[node]
        ]
        return min(open_slots, key=lambda s: (s in board.held_now, s), default=None)

    def slot_for(self, node: int, memory_mb: float, prefer: int = -1) -> int | None:
        """The preferred slot if it may be, else the first worker with heap and a seat left, else a new one."""
        board = self.board
        slots = self.mine[node]
        if prefer >= 0 and board.slot_node[prefer] == node and prefer not in slots and board.owner[prefer] == -1:
            slots = [*slots, prefer] if board.seats_left[prefer] > 0 else slots
        for slot in sorted(slots, key=lambda s: s != prefer):
            if board.seats_left[slot] > 0 and self.used[slot] + memory_mb <= self.limit + HAIR:
                return slot
        fresh = self._fresh(node)
        return fresh if fresh is not None and memory_mb <= self.limit + HAIR else None

    def put(self, slot: int, cpu_pct: float, memory_mb: float) -> None:
        self.board.take(slot, self.crew.number, cpu_pct, memory_mb)
        self.adopt(slot, memory_mb)
        self.refresh(int(self.board.slot_node[slot]))

    def remove(self, slot: int, cpu_pct: float, memory_mb: float) -> None:
        """Take an instance out again; a slot left empty is nobody's."""
        self.board.take(slot, self.crew.number, -cpu_pct, -memory_mb, count=-1)
        self.used[slot] -= memory_mb
        self.held[slot] -= 1
        node = int(self.board.slot_node[slot])
        if self.held[slot] == 0:
            self.mine[node].remove(slot)
            self.fresh_count[node] += 1
            del self.used[slot]
            if not self.board.shared:
                self.board.owner[slot] = -1
        self.refresh(node)
