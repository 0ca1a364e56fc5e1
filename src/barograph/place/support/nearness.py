"""Traffic between one instance and what each node holds so far, kept up to date as instances are placed and removed.

A block whose matrix is a product costs one vector operation however large it is; any other one sum over the others.
"""

from collections import defaultdict

import numpy as np

from barograph.place.support.cluster_arrays import Real, Whole, summed
from barograph.place.support.topology_arrays import Block, TopologyArrays


class Nearness:
    """``toward(i)[n]``: rows a second between instance i and the instances that were put on node n."""

    def __init__(self, arrays: TopologyArrays, nodes: int) -> None:
        self.nodes = nodes
        self.node = np.full(arrays.size, -1, dtype=np.int64)
        self._operator_of: list[int] = arrays.operator_of.tolist()
        self._out: dict[int, list[int]] = defaultdict(list)
        self._into: dict[int, list[int]] = defaultdict(list)
        self._blocks: list[Block] = [b for b in arrays.blocks if b.rows.size]
        for k, block in enumerate(self._blocks):
            self._out[self._operator_of[block.source]].append(k)
            self._into[self._operator_of[block.target]].append(k)
        self._x = np.zeros((len(self._blocks), nodes))  # sum of x over the sources on each node
        self._z = np.zeros((len(self._blocks), nodes))  # sum of z over the targets on each node

    def put_all(self, nodes: Whole) -> None:
        """Set the nodes of all instances; -1 for none."""
        self.node = nodes.copy()
        for k, block in enumerate(self._blocks):
            if block.x is not None and block.z is not None:
                a, b = nodes[block.sources], nodes[block.targets]
                self._x[k] = summed(a[a >= 0], block.x[a >= 0], self.nodes)
                self._z[k] = summed(b[b >= 0], block.z[b >= 0], self.nodes)

    def put(self, i: int, node: int) -> None:
        """Put instance i on a node; -1: remove it from its node."""
        old = int(self.node[i])
        self.node[i] = node
        operator = self._operator_of[i]
        for k in self._out[operator]:
            block = self._blocks[k]
            if block.x is not None:
                self._shift(self._x[k], float(block.x[i - block.source]), old, node)
        for k in self._into[operator]:
            block = self._blocks[k]
            if block.z is not None:
                self._shift(self._z[k], float(block.z[i - block.target]), old, node)

    @staticmethod
    def _shift(sums: Real, weight: float, old: int, new: int) -> None:
        if old >= 0:
            sums[old] -= weight
        if new >= 0:
            sums[new] += weight

    def toward(self, i: int) -> Real:
        """Traffic toward each node. The instance must be on no node, so that it does not count itself."""
        found = np.zeros(self.nodes)
        operator = self._operator_of[i]
        for k in self._out[operator]:
            block = self._blocks[k]
            if block.x is not None:
                found += block.x[i - block.source] * self._z[k]
            else:
                found += self._summed(block.row(i - block.source), block.targets)
        for k in self._into[operator]:
            block = self._blocks[k]
            if block.z is not None:
                found += block.z[i - block.target] * self._x[k]
            else:
                found += self._summed(block.column(i - block.target), block.sources)
        return found

    def _summed(self, rows: Real, others: slice) -> Real:
        where = self.node[others]
        there = where >= 0
        return summed(where[there], rows[there], self.nodes)


def total_traffic(arrays: TopologyArrays) -> Real:
    """Rows a second that each instance exchanges with others."""
    found = np.zeros(arrays.size)
    for block in arrays.blocks:
        if block.x is not None and block.z is not None:
            found[block.sources] += block.x * block.z.sum()
            found[block.targets] += block.z * block.x.sum()
            if block.source == block.target:
                found[block.sources] -= 2 * block.x * block.z
        else:
            found[block.sources] += block.rows.sum(axis=1) * block.scale
            found[block.targets] += block.rows.sum(axis=0) * block.scale
            if block.source == block.target:
                found[block.sources] -= 2 * np.diagonal(block.rows) * block.scale
    return found
