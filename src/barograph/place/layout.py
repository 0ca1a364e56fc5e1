"""A placement in the making that can never overcommit: every change is booked on nodes, slots and heaps at once.

It keeps count and answers what fits where; it decides nothing.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from barograph.place.adopt import adopt
from barograph.place.board import HAIR, Board, Real, Whole
from barograph.place.crew import Crew
from barograph.place.nearness import Nearness


class Layout:
    """where[c]: slot of each instance of crew c, -1 for none. It starts as what runs now."""

    def __init__(self, board: Board, everyone: list[Crew]) -> None:
        self.board, self.crews = board, everyone
        held = adopt(board, everyone)
        self.where: list[Whole] = [where for where, _ in held]
        self.heaps = [heaps for _, heaps in held]
        self.population: Whole = np.zeros(len(board.names), dtype=np.int64)
        for where in self.where:
            self.population += np.bincount(board.slot_node[where[where >= 0]], minlength=len(board.names))
        self._near: dict[int, Nearness] = {}

    def near(self, c: int) -> Nearness:
        """Made when first asked for, kept up to date from then on."""
        found = self._near.get(c)
        if found is None:
            found = self._near[c] = Nearness(self.crews[c], len(self.board.names))
            found.put_all(self.nodes(c))
        return found

    def nodes(self, c: int) -> Whole:
        """The node of each instance, -1 for none."""
        return np.where(self.where[c] >= 0, self.board.slot_node[self.where[c]], -1)

    def fits(self, c: int, i: int) -> NDArray[np.bool_]:
        """The nodes that could take instance i now."""
        crew, board = self.crews[c], self.board
        cpu, memory = float(crew.cpu_pct[i]), float(crew.memory_mb[i])
        found: NDArray[np.bool_] = self.heaps[c].fits(memory)
        found &= (board.cpu_left + HAIR >= cpu) & (board.memory_left + HAIR >= memory)
        return found

    def put(self, c: int, i: int, node: int) -> bool:
        """Place an instance that has no place; its own present slot is preferred. False where it does not fit."""
        crew, board = self.crews[c], self.board
        cpu, memory = float(crew.cpu_pct[i]), float(crew.memory_mb[i])
        if board.cpu_left[node] + HAIR < cpu or board.memory_left[node] + HAIR < memory:
            return False
        slot = self.heaps[c].slot_for(node, memory, int(crew.present[i]))
        if slot < 0 or not self.heaps[c].allowed[node]:
            return False
        self.heaps[c].put(slot, cpu, memory)
        self.where[c][i] = slot
        self.population[node] += 1
        if c in self._near:
            self._near[c].put(i, node)
        return True

    def remove(self, c: int, i: int) -> int:
        """Take an instance out; returns the node it was on."""
        crew = self.crews[c]
        slot = int(self.where[c][i])
        node = int(self.board.slot_node[slot])
        self.heaps[c].remove(slot, float(crew.cpu_pct[i]), float(crew.memory_mb[i]))
        self.where[c][i] = -1
        self.population[node] -= 1
        if c in self._near:
            self._near[c].put(i, -1)
        return node

    def rearrange(self, targets: Mapping[int, Whole]) -> bool:
        """Put every instance of these crews onto these nodes, or leave all as it was where that cannot be."""
        before = {c: self.where[c].copy() for c in targets}
        changed = [(c, i) for c, nodes in targets.items() for i in np.flatnonzero(nodes != self.nodes(c)).tolist()]
        self._clear(changed)
        if all(targets[c][i] < 0 or self.put(c, i, int(targets[c][i])) for c, i in changed):
            return True
        self._clear(changed)
        for c, i in changed:
            if before[c][i] >= 0:
                self.put_back(c, i, int(before[c][i]))
        return False

    def _clear(self, instances: Iterable[tuple[int, int]]) -> None:
        for c, i in instances:
            if self.where[c][i] >= 0:
                self.remove(c, i)

    def put_back(self, c: int, i: int, slot: int) -> None:
        crew, node = self.crews[c], int(self.board.slot_node[slot])
        self.heaps[c].put(slot, float(crew.cpu_pct[i]), float(crew.memory_mb[i]))
        self.where[c][i] = slot
        self.population[node] += 1
        if c in self._near:
            self._near[c].put(i, node)

    def room(self, c: int) -> tuple[Real, Real]:
        """CPU and memory each node has left for a crew; 0 where it may not be or finds no worker."""
        may = self.heaps[c].allowed & ((self.heaps[c].room >= 0) | (self.heaps[c].fresh > 0))
        return np.where(may, self.board.cpu_left, 0.0), np.where(may, self.board.memory_left, 0.0)
