"""Makes shares fit the cluster: headroom is cut first, and needed shares only if the cluster is too small for them.

The difference between comfortable and needed shares is headroom; all instances give up the same part of theirs until
the shares fit onto the nodes. If even the needed shares do not fit, higher levels are served first, and within a level
every topology gets what it needs up to a fair part; and the largest shares are cut to what a node has left beside the
others, because an instance that fits on no node would stop every change of its topology. It places nothing: whether
shares fit is tested by assigning them, largest first, each to the node with most left.
"""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from barograph.model import Node

LEAST_PCT = 1.0  # every instance gets at least this: a limit of 0 would stop it
_PARTS_OF_HEADROOM = (1.0, 0.75, 0.5, 0.25, 0.0)
_HALVINGS = 12  # of the range in which the largest share that fits is searched


def fit_to_nodes(
    needed: NDArray[np.float64],
    held: NDArray[np.float64],
    comfortable: NDArray[np.float64],
    level: NDArray[np.int64],
    owner: NDArray[np.int64],
    nodes: Sequence[Node],
) -> tuple[NDArray[np.float64], float]:
    """Shares between needed and comfortable that fit, and which part of the needed shares they cover (1: all).

    held: the smoothed shares, in between; reduced only after all other headroom. level, owner: priority level and
    number of each instance's topology.
    """
    room = sum(n.cpu_pct for n in nodes)
    needed = np.maximum(needed, LEAST_PCT)
    held = np.maximum(held, needed)
    comfortable = np.maximum(comfortable, held)
    if float(needed.sum()) > room:
        return _covering(_cut_to_fit(_too_little(needed, comfortable, level, owner, room), nodes), needed)
    for least, most in ((held, comfortable), (needed, held)):
        for part in _PARTS_OF_HEADROOM:
            shares = least + part * (most - least)
            if float(shares.sum()) <= room and fits(shares, nodes):
                return shares, 1.0
    return _covering(_cut_to_fit(needed, nodes), needed)  # the sum fits, but not every instance


def fits(shares: NDArray[np.float64], nodes: Sequence[Node]) -> bool:
    """Whether all fit when assigned largest first, each to the node with most left."""
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
) -> NDArray[np.float64]:
    """Higher levels first, until no CPU is left; the others keep the minimum.

    Within a level, a topology that needs much does not take CPU from those that need little: what is left is shared
    max-min fairly among them, up to their comfortable shares, and within a topology in proportion to the needed shares,
    so that no operator starves another.
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
    return shares


def _covering(shares: NDArray[np.float64], needed: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The shares, and which part of the needed ones they cover."""
    return shares, min(1.0, float(np.minimum(shares, needed).sum() / needed.sum()))


def _cut_to_fit(shares: NDArray[np.float64], nodes: Sequence[Node]) -> NDArray[np.float64]:
    """The shares, none above the largest value with which all of them fit; unchanged if no such value is found."""
    if fits(shares, nodes):
        return shares
    low, high, found = LEAST_PCT, float(shares.max()), shares
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        cut = np.minimum(shares, middle)
        if fits(cut, nodes):
            low, found = middle, cut
        else:
            high = middle
    return found


def fair_parts(wants: Mapping[int, float], room: float) -> dict[int, float]:
    """Max-min fair: none gets more than it wants, and none could get more without taking from one that has less."""
    given: dict[int, float] = {}
    for count, (name, want) in zip(range(len(wants), 0, -1), sorted(wants.items(), key=lambda w: w[1]), strict=True):
        given[name] = min(want, room / count)
        room -= given[name]
    return given
