"""Who exchanges rows with whom: a crew's blocks as links of one instance, and as pairs in falling order.

Traffic of a pair is the undirected sum: both directions, all edges between the two. What an instance sends to itself
never leaves it and is no link.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from barograph.place.board import Real
from barograph.place.crew import Block, Crew
from barograph.place.pairing import Index, Links, Pairs, falling


def links_of(crew: Crew) -> Links:
    """item -> [(others, rows a second with each)]."""
    out: dict[int, list[Block]] = defaultdict(list)
    into: dict[int, list[Block]] = defaultdict(list)
    for block in crew.blocks:
        if block.rows.size:
            out[int(crew.operator_of[block.source])].append(block)
            into[int(crew.operator_of[block.target])].append(block)
    operator_of = crew.operator_of.tolist()

    def links(i: int) -> Sequence[tuple[slice, Real]]:
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


def pairs_of(crew: Crew) -> Pairs:
    """Every pair of instances that exchange rows, falling; ties by operators as listed, then by index."""
    between: dict[tuple[int, int], list[Block]] = defaultdict(list)
    for block in crew.blocks:
        if block.rows.size:
            between[min(block.source, block.target), max(block.source, block.target)].append(block)
    return falling([_pairs(*ends, blocks) for ends, blocks in sorted(between.items())])


def _pairs(low: int, high: int, blocks: list[Block]) -> Pairs:
    first = blocks[0].rows if blocks[0].source == low else blocks[0].rows.T
    rate = np.zeros(first.shape)
    for block in blocks:
        rate += block.rows * block.scale if block.source == low else block.rows.T * block.scale
    if low == high:
        rate = np.triu(rate + rate.T, 1)
    i, j = np.nonzero(rate > 0)
    values = rate[i, j]
    return _index(i, low), _index(j, high), values


def _index(positions: np.ndarray[tuple[int, ...], np.dtype[np.int64]], start: int) -> Index:
    found: Index = (positions + start).astype(np.int32)
    return found
