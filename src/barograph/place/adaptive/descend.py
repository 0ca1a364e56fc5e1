"""Local search: repeat the best single move or exchange until none lowers the traffic between nodes.

It works on dense arrays, for some hundreds of items. Every intermediate state respects CPU, memory and seats.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.place.support.cluster_arrays import HAIR, Real, Whole

LEAST_GAIN = 1e-9  # of all traffic: less is rounding


@dataclass(frozen=True, eq=False)
class Puzzle:
    """rate[i, j]: undirected rows a second. cpu, memory: of items; room_*: of nodes without these items.

    may[i, n]: whether item i may be on node n. weight: the cost of moving an item.
    """

    rate: Real
    cpu: Real
    memory: Real
    room_cpu: Real
    room_memory: Real
    seats: Whole
    may: NDArray[np.bool_]
    weight: Real

    def left(self, node: Whole) -> tuple[Real, Real, Whole]:
        """What nodes have left when items are on these nodes (-1: on none)."""
        there = node >= 0
        count = len(self.room_cpu)
        cpu = self.room_cpu - np.bincount(node[there], weights=self.cpu[there], minlength=count)
        memory = self.room_memory - np.bincount(node[there], weights=self.memory[there], minlength=count)
        return cpu, memory, self.seats - np.bincount(node[there], minlength=count)

    def crossing(self, node: Whole) -> float:
        """Traffic between items of different nodes."""
        return float(self.rate[node[:, None] != node[None, :]].sum()) / 2.0


def descend(puzzle: Puzzle, start: Whole, steps: int, budget: float = np.inf) -> Whole:
    """The nodes after at most ``steps`` steps, with moves of total weight up to ``budget``. All items have a node."""
    p = puzzle
    node = start.copy()
    items = np.arange(len(node))
    near = np.zeros((len(node), len(p.room_cpu)))
    for n in range(len(p.room_cpu)):
        near[:, n] = p.rate[:, node == n].sum(axis=1)
    cpu_left, memory_left, seats_left = p.left(node)
    hair = LEAST_GAIN * max(float(p.rate.sum()), HAIR)
    spent = 0.0
    for _ in range(steps):
        here = near[items, node]
        gain = near - here[:, None]
        fits = p.may & (p.cpu[:, None] <= cpu_left + HAIR) & (p.memory[:, None] <= memory_left + HAIR)
        fits &= seats_left > 0
        fits &= (spent + p.weight <= budget)[:, None]
        move = np.where(fits, gain, -np.inf) / p.weight[:, None]
        i, n = divmod(int(move.argmax()), move.shape[1])
        swap = _swaps(p, node, gain[:, node], cpu_left, memory_left, spent, budget)
        j, k = divmod(int(swap.argmax()), swap.shape[1])
        best_move, best_swap = float(move[i, n]), float(swap[j, k])
        if max(best_move, best_swap) <= hair:
            break
        changes = [(i, n)] if best_move >= best_swap else [(j, int(node[k])), (k, int(node[j]))]
        for item, to in changes:
            a = int(node[item])
            near[:, a] -= p.rate[:, item]
            near[:, to] += p.rate[:, item]
            cpu_left[a] += p.cpu[item]
            cpu_left[to] -= p.cpu[item]
            memory_left[a] += p.memory[item]
            memory_left[to] -= p.memory[item]
            seats_left[a] += 1
            seats_left[to] -= 1
            node[item] = to
            spent += float(p.weight[item])
    return node


def _swaps(
    p: Puzzle, node: Whole, toward: Real, cpu_left: Real, memory_left: Real, spent: float, budget: float
) -> Real:
    """Gain of exchanging i and j, for the weight of both; toward[i, j]: what moving i alone to the node of j gains."""
    weight = p.weight[:, None] + p.weight[None, :]
    gain = (toward + toward.T - 2 * p.rate) / weight
    more_cpu = p.cpu[None, :] - p.cpu[:, None]  # what the node of i has to hold in addition when j replaces i
    more_memory = p.memory[None, :] - p.memory[:, None]
    holds = (more_cpu <= cpu_left[node][:, None] + HAIR) & (more_memory <= memory_left[node][:, None] + HAIR)
    fits = holds & holds.T & (node[:, None] != node[None, :])
    may = p.may[:, node]
    fits &= may & may.T & (spent + weight <= budget)
    return np.where(fits, gain, -np.inf)
