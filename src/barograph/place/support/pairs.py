"""Pairs of items that exchange rows, in falling order of traffic: what ``online_pairing`` goes through.

It sorts pairs and marks ranges of equal ones; it assigns nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.place.support.cluster_arrays import Real

Links = Callable[[int], Sequence[tuple[slice, Real]]]
Index = NDArray[np.int32]
NARROW = 256  # for even ranges with fewer columns, evaluation by bins is not faster


@dataclass(frozen=True, eq=False)
class Pairs:
    """i, j and their traffic, falling. even: ranges of equal traffic between items that are alike within each side:
    of equal load and equal links. Such pairs differ only by their bins, so they are evaluated once for each two bins.
    """

    i: Index
    j: Index
    rate: Real
    even: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class OperatorPairs:
    """Pairs between two operators, in any order. even: they have one traffic, and the items of each side are alike."""

    i: Index
    j: Index
    rate: Real
    even: bool = False


def falling(parts: Sequence[OperatorPairs]) -> Pairs:
    """All pairs in falling order of traffic; those of equal traffic stay in the order in which they are given."""
    parts = [part for part in parts if len(part.i)]
    if not parts:
        none = np.zeros(0, dtype=np.int32)
        return Pairs(none, none, np.zeros(0))
    if all(part.even for part in parts):  # sorting the parts sorts the pairs
        parts = sorted(parts, key=lambda part: -float(part.rate[0]))
    i, j = np.concatenate([part.i for part in parts]), np.concatenate([part.j for part in parts])
    rate = np.concatenate([part.rate for part in parts])
    if not bool((rate[1:] <= rate[:-1]).all()):
        order = np.argsort(-rate, kind="stable")
        i, j, rate = i[order], j[order], rate[order]
    return Pairs(i, j, rate, tuple(sorted(_even_ranges(parts, rate))))


def _even_ranges(parts: Sequence[OperatorPairs], rate: Real) -> list[tuple[int, int]]:
    """Where the even parts ended up: a stable sort keeps each in one piece."""
    found = []
    for k, part in enumerate(parts):
        if part.even and part.j.max() - part.j.min() >= NARROW:
            one = float(part.rate[0])
            before = sum(int((p.rate == one).sum()) for p in parts[:k])
            start = int(np.searchsorted(-rate, -one)) + before
            found.append((start, start + len(part.i)))
    return found
