"""One topology's workers on each node: a worker more where a heap limit, or the seats of a worker, ask for it.

Where workers are shared (Spark) they exist already, so their heap is theirs and only seats count. All topologies of a
decision share one count of fresh slots, so that each sees what the others took.
"""

from collections import defaultdict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from barograph.place.board import HAIR, Board, Real, Whole
from barograph.place.crew import Crew


class Heaps:
    """fresh: slots of each node in which a topology could start a worker, shared by all. room: of its own workers."""

    def __init__(self, board: Board, crew: Crew, fresh: Whole) -> None:
        self.board, self.crew, self.fresh = board, crew, fresh
        limit = crew.topology.max_heap_mb
        self.limit = np.inf if board.shared or not limit else float(limit)
        self.used: dict[int, float] = defaultdict(float)  # slot -> heap of this topology's instances in it
        self.held: dict[int, int] = defaultdict(int)  # slot -> how many of its instances are in it
        self.mine: dict[int, list[int]] = defaultdict(list)  # node -> its slots, in the order of use
        self.room: Real = np.full(len(board.names), -1.0)  # the most memory an own worker there still takes
        self.allowed = np.zeros(len(board.names), dtype=np.bool_)
        self.allowed[board.allowed(crew.topology.name)] = True

    def fits(self, memory_mb: float, avoid: Collection[int] = ()) -> NDArray[np.bool_]:
        """Nodes on which an instance of so much memory finds a worker, an own one or a fresh slot, not in ``avoid``."""
        found = self.room + HAIR >= memory_mb
        if memory_mb <= self.limit + HAIR:
            found |= self.fresh > 0
        found &= self.allowed
        for node in {int(self.board.slot_node[slot]) for slot in avoid}:
            found[node] = found[node] and self.slot_for(node, memory_mb, avoid=avoid) >= 0
        return found

    def adopt_all(self, slots: Whole) -> None:
        """What runs already; seats, CPU and memory of the board are booked by the caller."""
        memory = self.crew.memory_mb
        for i in np.flatnonzero(slots >= 0).tolist():
            self._enter(int(slots[i]), float(memory[i]))
        for node in list(self.mine):
            self._look(node)

    def _enter(self, slot: int, memory_mb: float) -> None:
        if self.held[slot] == 0:
            self.mine[int(self.board.slot_node[slot])].append(slot)
        self.held[slot] += 1
        self.used[slot] += memory_mb

    def _look(self, node: int) -> None:
        if self.board.shared:
            return  # others sit in the same workers: only the common count of seats is true
        seats = self.board.seats_left
        self.room[node] = max((self.limit - self.used[s] for s in self.mine[node] if seats[s] > 0), default=-1.0)

    def slot_for(self, node: int, memory_mb: float, prefer: int = -1, avoid: Collection[int] = ()) -> int:
        """The preferred slot if it may be, else the first own worker with room, else a fresh slot; -1 where none is.

        avoid: slots that are no choice.
        """
        board = self.board
        own = self.mine[node]
        if prefer >= 0 and board.slot_node[prefer] == node and (prefer in own or board.is_fresh(prefer)):
            own = [prefer, *own]
        for slot in own:
            if slot not in avoid and board.seats_left[slot] > 0 and self.used[slot] + memory_mb <= self.limit + HAIR:
                return slot
        if memory_mb > self.limit + HAIR:
            return -1
        second = -1
        for slot in board.slots_of(node):
            if board.is_fresh(slot) and slot not in own:
                if slot not in board.held_now:
                    return slot
                second = slot if second < 0 else second  # somebody runs there now: only where nothing else is left
        return second

    def put(self, slot: int, cpu_pct: float, memory_mb: float) -> None:
        board = self.board
        node = int(board.slot_node[slot])
        before = board.is_fresh(slot)
        board.take(slot, self.crew.number, cpu_pct, memory_mb)
        self.fresh[node] += int(board.is_fresh(slot)) - int(before)
        self._enter(slot, memory_mb)
        self._look(node)

    def remove(self, slot: int, cpu_pct: float, memory_mb: float) -> None:
        """Take an instance out again; a slot left empty is nobody's."""
        board = self.board
        node = int(board.slot_node[slot])
        before = board.is_fresh(slot)
        board.take(slot, self.crew.number, -cpu_pct, -memory_mb, count=-1)
        self.used[slot] -= memory_mb
        self.held[slot] -= 1
        if self.held[slot] == 0:
            self.mine[node].remove(slot)
            del self.used[slot]
            if not board.shared:
                board.vacate(slot)
        self.fresh[node] += int(board.is_fresh(slot)) - int(before)
        self._look(node)
