"""Makes shares fit the cluster: headroom goes first, and demand itself is cut only where there is not enough of it.

Between what is needed and what would be comfortable lies headroom; all give up the same part of theirs until the
shares fit onto the nodes. Where even what is needed does not fit, higher levels are served first, and within a level
every topology gets what it needs as long as that is no more than a fair part. It places nothing: whether shares fit is
tried by dealing them, largest first, each to the node with most left.
"""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from barograph.model import Node

LEAST_PCT = 1.0  # what an instance keeps at all events: a limit of nothing would stop it
_PARTS_OF_HEADROOM = (1.0, 0.75, 0.5, 0.25, 0.0)


def fit_to_nodes(
    needed: NDArray[np.float64],
    held: NDArray[np.float64],
    comfortable: NDArray[np.float64],
    level: NDArray[np.int64],
    owner: NDArray[np.int64],
    nodes: Sequence[Node],
) -> tuple[NDArray[np.float64], float]:
    """Shares between needed and comfortable that fit, and which part of what is needed they hold (1: all of it).

    held: what smoothing holds on to, in between; given up only after all other headroom. level, owner: of each
    instance its topology's priority and its topology.
    """
    room = sum(n.cpu_pct for n in nodes)
    needed = np.maximum(needed, LEAST_PCT)
    held = np.maximum(held, needed)
    comfortable = np.maximum(comfortable, held)
    if float(needed.sum()) > room:
        return _too_little(needed, comfortable, level, owner, room)
    for least, most in ((held, comfortable), (needed, held)):
        for part in _PARTS_OF_HEADROOM:
            shares = least + part * (most - least)
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


def _too_little(
    needed: NDArray[np.float64],
    comfortable: NDArray[np.float64],
    level: NDArray[np.int64],
    owner: NDArray[np.int64],
    room: float,
) -> tuple[NDArray[np.float64], float]:
    """Higher levels first, as long as it lasts; the others keep the least there is.

    Of one level, topologies that need little are not made to pay for one that needs too much: what is left is shared
    fairly among them, up to what is comfortable, and within a topology in proportion to what is needed, so that none
    of its operators starves another.
    """
    shares = np.full(len(needed), LEAST_PCT)
    left = room - float(shares.sum())
    for one in sorted(set(level.tolist())):
        members = sorted(set(owner[level == one].tolist()))
        wants = {t: float((comfortable[owner == t] - LEAST_PCT).sum()) for t in members}
        for t, given in fair_parts(wants, max(0.0, left)).items():
            mine = owner == t
            aim = comfortable[mine] if given >= wants[t] else needed[mine]
            more = aim - LEAST_PCT
            part = min(1.0, given / float(more.sum())) if more.sum() > 0 else 0.0
            shares[mine] += part * more
            left -= part * float(more.sum())
    return shares, min(1.0, float(np.minimum(shares, needed).sum() / needed.sum()))


def fair_parts(wants: Mapping[int, float], room: float) -> dict[int, float]:
    """Max-min fair: nobody gets more than it wants, and nobody could get more without taking from who has less."""
    given: dict[int, float] = {}
    for count, (name, want) in zip(range(len(wants), 0, -1), sorted(wants.items(), key=lambda w: w[1]), strict=True):
        given[name] = min(want, room / count)
        room -= given[name]
    return given
