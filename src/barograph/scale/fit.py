"""Makes shares fit the cluster: headroom goes first, and demand itself is cut only where there is not enough of it.

Between what is needed and what would be comfortable lies headroom; all give up the same part of theirs until the
shares fit onto the nodes. Where even what is needed does not fit, higher levels are served first. It places nothing:
whether shares fit is tried by dealing them, largest first, each to the node with most left.
"""

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from barograph.model import Node

LEAST_PCT = 1.0  # what an instance keeps at all events: a limit of nothing would stop it
_PARTS_OF_HEADROOM = (1.0, 0.75, 0.5, 0.25, 0.0)


def fit_to_nodes(
    needed: NDArray[np.float64], comfortable: NDArray[np.float64], level: NDArray[np.int64], nodes: Sequence[Node]
) -> tuple[NDArray[np.float64], float]:
    """Shares between needed and comfortable that fit, and which part of what is needed they hold (1: all of it)."""
    room = sum(n.cpu_pct for n in nodes)
    needed = np.maximum(needed, LEAST_PCT)
    comfortable = np.maximum(comfortable, needed)
    if float(needed.sum()) > room:
        return _by_level(needed, level, room)
    for part in _PARTS_OF_HEADROOM:
        shares = needed + part * (comfortable - needed)
        if float(shares.sum()) <= room and fits(shares, nodes):
            return shares, 1.0
    return needed, 1.0  # it fits in sum, if not piece by piece: the placer says what it cannot place


def fits(shares: NDArray[np.float64], nodes: Sequence[Node]) -> bool:
    """Whether dealing them, largest first, each to the node with most left, finds a place for all."""
    left = [-n.cpu_pct for n in nodes]
    heapq.heapify(left)
    for share in np.sort(shares)[::-1].tolist():
        most = -left[0]
        if share > most + 1e-9:
            return False
        heapq.heapreplace(left, -(most - share))
    return True


def _by_level(needed: NDArray[np.float64], level: NDArray[np.int64], room: float) -> tuple[NDArray[np.float64], float]:
    """Higher levels in full as long as it lasts; the others keep the least there is."""
    shares = np.full(len(needed), LEAST_PCT)
    left = room - float(shares.sum())
    for one in sorted(set(level.tolist())):
        mine = level == one
        more = needed[mine] - LEAST_PCT
        part = min(1.0, max(0.0, left) / float(more.sum())) if more.sum() > 0 else 0.0
        shares[mine] += part * more
        left -= part * float(more.sum())
    return shares, float(shares.sum() / needed.sum())
