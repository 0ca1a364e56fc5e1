"""Which instances exchange rows: a topology's traffic as links of one instance, and as pairs in falling order.

Traffic of a pair is the undirected sum: both directions, all edges between the two. Rows that an
instance sends to itself are no link.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from barograph.place.support.cluster_arrays import Real
from barograph.place.support.pairs import Links, OperatorPairs, Pairs, falling
from barograph.place.support.topology_arrays import Block, TopologyArrays


def links_of(arrays: TopologyArrays) -> Links:
    """item -> [(others, rows a second with each)]."""
    out: dict[int, list[Block]] = defaultdict(list)
    into: dict[int, list[Block]] = defaultdict(list)
    for block in arrays.blocks:
        if block.rows.size:
            out[int(arrays.operator_of[block.source])].append(block)
            into[int(arrays.operator_of[block.target])].append(block)
    operator_of = arrays.operator_of.tolist()
    alike = {int(arrays.operator_of[f]) for f in alike_operators(arrays, np.zeros(arrays.size))}
    alike -= {int(arrays.operator_of[b.source]) for b in arrays.blocks if b.rows.size and b.source == b.target}
    known: dict[int, Sequence[tuple[slice, Real]]] = {}  # operators whose instances all have the same links

    def links(i: int) -> Sequence[tuple[slice, Real]]:
        operator = operator_of[i]
        if operator in known:
            return known[operator]
        found: list[tuple[slice, Real]] = []
        for block in out[operator_of[i]]:
            row = _row(block, i - block.source)
            if block.source == block.target:
                row[i - block.source] = 0.0
            found.append((block.targets, row))
        for block in into[operator_of[i]]:
            column = _column(block, i - block.target)
            if block.source == block.target:
                column[i - block.target] = 0.0
            found.append((block.sources, column))
        if operator in alike:
            known[operator] = found
        return found

    return links


def _row(block: Block, i: int) -> Real:
    if block.x is not None and block.z is not None:
        found: Real = block.x[i] * block.z
        return found
    return block.row(i)


def _column(block: Block, j: int) -> Real:
    if block.x is not None and block.z is not None:
        found: Real = block.z[j] * block.x
        return found
    return block.column(j)


def pairs_of(arrays: TopologyArrays, load: Real) -> Pairs:
    """Every pair of instances that exchange rows, falling; ties by operators as listed, then by index."""
    between: dict[tuple[int, int], list[Block]] = defaultdict(list)
    for block in arrays.blocks:
        if block.rows.size:
            between[min(block.source, block.target), max(block.source, block.target)].append(block)
    alike = alike_operators(arrays, load)
    return falling([_part(arrays, *ends, blocks, alike) for ends, blocks in sorted(between.items())])


def alike_operators(arrays: TopologyArrays, load: Real) -> set[int]:
    """First instances of operators whose instances are all alike: equal load, equal traffic with all others."""
    found = {int(f) for f, c in zip(arrays.start, arrays.counts, strict=True) if _constant(load[f : f + c])}
    for block in arrays.blocks:
        if block.x is None or block.z is None or not _constant(block.x):
            found.discard(block.source)
        if block.x is None or block.z is None or not _constant(block.z):
            found.discard(block.target)
    return found


def _constant(values: Real) -> bool:
    return len(values) == 0 or bool((values == values[0]).all())


def _part(arrays: TopologyArrays, low: int, high: int, blocks: list[Block], alike: set[int]) -> OperatorPairs:
    n, m = (int(arrays.counts[arrays.operator_of[start]]) for start in (low, high))
    if low != high and {low, high} <= alike:
        one = sum(float(b.rows[0, 0]) * b.scale for b in blocks)
        if one <= 0:
            n = m = 0
        i, j = np.repeat(np.arange(low, low + n), m), np.tile(np.arange(high, high + m), n)
        return OperatorPairs(i.astype(np.int32), j.astype(np.int32), np.full(n * m, one), even=True)
    rate = np.zeros((n, m))
    for block in blocks:
        rate += (block.rows if block.source == low else block.rows.T) * block.scale
    if low == high:
        rate = np.triu(rate + rate.T, 1)
    i, j = np.nonzero(rate > 0)
    return OperatorPairs((i + low).astype(np.int32), (j + high).astype(np.int32), rate[i, j])
