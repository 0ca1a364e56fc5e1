"""Small clusters: several starts, each improved by local search; an exact search if no start places all instances.

Everything is deterministic: the random starts come from a fixed seed.
"""

import numpy as np

from barograph.place.adaptive.descend import Puzzle, descend
from barograph.place.support.cluster_arrays import HAIR, Whole

STATES = 200_000  # of the exact search, before it gives up


def best_of_starts(puzzle: Puzzle, first: Whole, starts: int) -> Whole | None:
    """The best placement found; None if no search places all items. first: one start (-1: item not placed)."""
    rng = np.random.default_rng(0)
    begins = [first] if (first >= 0).all() else []
    orders = [np.argsort(-puzzle.rate.sum(axis=1), kind="stable"), np.argsort(-_size(puzzle), kind="stable")]
    orders += [rng.permutation(len(first)) for _ in range(starts)]
    for order in orders:
        found = _greedy(puzzle, order)
        if found is not None:
            begins.append(found)
    if not begins:
        exact = _exact(puzzle)
        if exact is None:
            return None
        begins.append(exact)
    best: tuple[float, int] | None = None
    answer = first
    for begin in begins:
        node = descend(puzzle, begin, steps=4 * len(first))
        cost = (round(puzzle.crossing(node), 9), len(set(node.tolist())))
        if best is None or cost < best:
            best, answer = cost, node
    for k in range(2 * starts):  # perturb the best one: place a few items again
        shaken = answer.copy()
        loose = rng.permutation(len(first))[: 2 + k % 5]
        shaken[loose] = -1
        again = _greedy(puzzle, loose, shaken)
        if again is None:
            continue
        node = descend(puzzle, again, steps=4 * len(first))
        cost = (round(puzzle.crossing(node), 9), len(set(node.tolist())))
        if best is None or cost < best:
            best, answer = cost, node
    return answer


def _size(p: Puzzle) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How much of the largest node an item takes: the larger of its CPU and memory parts."""
    memory = np.where(np.isfinite(p.room_memory), p.room_memory, 0.0).max(initial=HAIR)
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.maximum(
        p.cpu / max(float(p.room_cpu.max(initial=0.0)), HAIR), p.memory / max(float(memory), HAIR)
    )
    return found


def _greedy(p: Puzzle, order: Whole, start: Whole | None = None) -> Whole | None:
    """Each item, in order, to the nearest node with room; ties to the fullest. None if one fits on no node."""
    node = np.full(len(p.cpu), -1, dtype=np.int64) if start is None else start.copy()
    cpu_left, memory_left, seats_left = p.left(node)
    for i in order.tolist():
        fits = p.may[i] & (cpu_left + HAIR >= p.cpu[i]) & (memory_left + HAIR >= p.memory[i]) & (seats_left > 0)
        if not fits.any():
            return None
        there = node >= 0
        near = np.bincount(node[there], weights=p.rate[i, there], minlength=len(cpu_left))
        n = int(np.lexsort((cpu_left, np.where(fits, -near, np.inf)))[0])
        node[i] = n
        cpu_left[n] -= p.cpu[i]
        memory_left[n] -= p.memory[i]
        seats_left[n] -= 1
    return node


def _exact(p: Puzzle) -> Whole | None:
    """Depth first over largest items, the fullest node first; gives up after STATES states."""
    order = np.argsort(-_size(p), kind="stable").tolist()
    node = np.full(len(p.cpu), -1, dtype=np.int64)
    cpu_left, memory_left, seats_left = p.left(node)
    states = 0

    def place(position: int) -> bool:
        nonlocal states
        if position == len(order):
            return True
        states += 1
        if states > STATES or cpu_left.sum() + HAIR < p.cpu[order[position:]].sum():
            return False
        i = order[position]
        fits = p.may[i] & (cpu_left + HAIR >= p.cpu[i]) & (memory_left + HAIR >= p.memory[i]) & (seats_left > 0)
        seen: set[tuple[float, float, int, bytes]] = set()
        for n in sorted(np.flatnonzero(fits).tolist(), key=lambda m: (cpu_left[m], m)):
            same = (float(cpu_left[n]), float(memory_left[n]), int(seats_left[n]), p.may[:, n].tobytes())
            if same in seen:
                continue  # equal to a node that was tried without success
            seen.add(same)
            node[i] = n
            cpu_left[n] -= p.cpu[i]
            memory_left[n] -= p.memory[i]
            seats_left[n] -= 1
            if place(position + 1):
                return True
            cpu_left[n] += p.cpu[i]
            memory_left[n] += p.memory[i]
            seats_left[n] += 1
            node[i] = -1
        return False

    return node if place(0) else None
