"""What runs now, booked so far as it is within the limits. What is not has to go elsewhere.

Where a node is overcommitted (shares grew, memory was declared anew) as little as possible is taken off it: of the
topologies served last first, stateless before stateful, small state before large, and the one that just suffices.
"""

import numpy as np

from barograph.place.board import HAIR, Board, Whole, summed
from barograph.place.crew import Crew
from barograph.place.heaps import Heaps


def adopt(board: Board, everyone: list[Crew]) -> list[tuple[Whole, Heaps]]:
    """For each topology the slot of each instance (-1: to be placed) and its workers; the board is booked."""
    slots = [crew.present.copy() for crew in everyone]
    for crew, where in zip(everyone, slots, strict=True):
        _claim_slots(board, crew, where)
    _relieve_nodes(board, everyone, slots)
    for crew, where in zip(everyone, slots, strict=True):
        _keep_to_heaps(board, crew, where)
        there = where >= 0
        nodes = board.slot_node[where[there]]
        board.cpu_left -= summed(nodes, crew.cpu_pct[there], len(board.names))
        board.memory_left -= summed(nodes, crew.memory_mb[there], len(board.names))
        taken = np.bincount(where[there], minlength=len(board.seats_left))
        board.seats_left -= taken
        if not board.shared:
            board.owner[board.owner == crew.number] = -1
            board.owner[where[there]] = crew.number
    fresh = board.fresh_slots()
    found = []
    for crew, where in zip(everyone, slots, strict=True):
        heaps = Heaps(board, crew, fresh)
        heaps.adopt_all(where)
        found.append((where, heaps))
    return found


def _claim_slots(board: Board, crew: Crew, where: Whole) -> None:
    """A slot belongs to the first who claims it; beyond its seats nobody sits."""
    there = np.flatnonzero(where >= 0)
    taken = board.owner[where[there]]
    where[there[(taken != -1) & (taken != crew.number)]] = -1
    there = np.flatnonzero(where >= 0)
    if not board.shared:
        board.owner[where[there]] = crew.number
        left = board.seats_left
    else:
        left = board.seats_left - board.claimed
    count = np.bincount(where[there], minlength=len(left))
    for slot in np.flatnonzero(count > left).tolist():
        where[np.flatnonzero(where == slot)[max(0, int(left[slot])) :]] = -1
    if board.shared:
        board.claimed += np.bincount(where[where >= 0], minlength=len(left))


def _relieve_nodes(board: Board, everyone: list[Crew], slots: list[Whole]) -> None:
    number = np.concatenate([np.full(c.size, k) for k, c in enumerate(everyone)] or [np.zeros(0, dtype=np.int64)])
    index = np.concatenate([np.arange(c.size) for c in everyone] or [np.zeros(0, dtype=np.int64)])
    where = np.concatenate(slots or [np.zeros(0, dtype=np.int64)])
    node = np.where(where >= 0, board.slot_node[where], -1)
    cpu = np.concatenate([c.cpu_pct for c in everyone] or [np.zeros(0)])
    memory = np.concatenate([c.memory_mb for c in everyone] or [np.zeros(0)])
    there = node >= 0
    over_cpu = summed(node[there], cpu[there], len(board.names)) - board.cpu_pct
    over_memory = summed(node[there], memory[there], len(board.names)) - board.memory_mb
    state = np.concatenate([np.where(c.stateful, 1.0 + c.state_mb, 0.0) for c in everyone] or [np.zeros(0)])
    level = np.array([c.topology.level for c in everyone])
    for n in np.flatnonzero((over_cpu > HAIR) | (over_memory > HAIR)).tolist():
        here = np.flatnonzero(node == n).tolist()
        while here and (over_cpu[n] > HAIR or over_memory[n] > HAIR):
            i = _least_harm(here, number, level, state, cpu, memory, float(over_cpu[n]), float(over_memory[n]))
            here.remove(i)
            slots[int(number[i])][int(index[i])] = -1
            over_cpu[n] -= cpu[i]
            over_memory[n] -= memory[i]


def _least_harm(
    here: list[int],
    number: Whole,
    level: Whole,
    state: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    cpu: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    memory: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    over_cpu: float,
    over_memory: float,
) -> int:
    """Lowest level first, then least state; among equals the smallest that suffices alone, else the largest."""

    def harm(i: int) -> tuple[float, float, bool, float, int]:
        suffices = cpu[i] + HAIR >= over_cpu and memory[i] + HAIR >= over_memory
        size = float(cpu[i]) if over_cpu > HAIR else float(memory[i])
        return -float(level[number[i]]), float(state[i]), not suffices, size if suffices else -size, -i

    return min(here, key=harm)


def _keep_to_heaps(board: Board, crew: Crew, where: Whole) -> None:
    """A worker holds no more than its heap limit; where it does, the last ones go."""
    limit = crew.topology.max_heap_mb
    if board.shared or not limit:
        return
    there = where >= 0
    used = summed(where[there], crew.memory_mb[there], len(board.slot_node))
    for slot in np.flatnonzero(used > limit + HAIR).tolist():
        for i in np.flatnonzero(where == slot)[::-1].tolist():
            if used[slot] <= limit + HAIR:
                break
            where[i] = -1
            used[slot] -= crew.memory_mb[i]
