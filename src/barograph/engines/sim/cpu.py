"""How fast each instance runs: at its share, or, where a node's instances want more than it has, at an equal level.

Linux shares a full node out max-min fairly among its threads: who wants less than the level gets what it wants, all
others get the level.
"""

import numpy as np
from numpy.typing import NDArray

from barograph.engines.sim.layout import Floats, Ints

_ROUNDS = 12


_FORGET_S = 0.7
_RAMP = 1.25  # who waited for room may find so much more of it next


class Appetite:
    """What instances want of their nodes: CPU for what waits and what lately arrived, if it finds room downstream.

    Rates are the largest of late, forgotten within a second or two: a node that is full stays full between two bursts.
    """

    def __init__(self, n: int) -> None:
        self._arriving = np.zeros(n)
        self._passed = np.full(n, np.inf)

    def saw(self, arrived: Floats, passed: Floats, dt_s: float) -> None:
        """arrived: rows. passed: rows that found room, infinite where room was no matter."""
        fade = np.exp(-dt_s / _FORGET_S)
        self._arriving = np.maximum(arrived / dt_s, fade * self._arriving)
        before = np.where(np.isfinite(self._passed), self._passed, 0.0)
        self._passed = np.where(np.isfinite(passed), np.maximum(passed / dt_s, fade * before), np.inf)

    def cores(self, waiting: Floats, unit_s: Floats, dt_s: float) -> Floats:
        rows = np.minimum(waiting / dt_s + self._arriving, _RAMP * self._passed + 1.0 / dt_s)
        found: Floats = rows * unit_s
        return found


class Pace:
    """Rows a second each instance has executed of late, by the time in which it was not idle, as receivers on Spark do.

    So the pace of an instance that waits for room downstream is that of what it waits for. window_s: how much time
    counts; what happened before fades out.
    """

    def __init__(self, n: int, window_s: float) -> None:
        self._window_s = window_s
        self._rows, self._spent_s = np.zeros(n), np.zeros(n)

    def saw(self, executed: Floats, spent_s: Floats) -> None:
        """spent_s: working or waiting for room."""
        kept = np.maximum(0.0, 1.0 - spent_s / self._window_s)
        self._rows = self._rows * kept + executed
        self._spent_s = self._spent_s * kept + spent_s

    def of(self, able: Floats) -> Floats:
        """able: rows a second each could do; what counts for an instance that has done nothing yet."""
        known = self._spent_s > 1e-3
        found: Floats = np.where(known, np.minimum(able, self._rows / np.where(known, self._spent_s, 1.0)), able)
        return found


def speeds(limit: Floats, wanted: Floats, node_of: Ints, capacity: Floats, loss: float) -> Floats:
    """Cores each instance may use now.

    limit: its share, in cores. wanted: what it would use, in cores. capacity: cores of each node.
    loss: what part of a full node's CPU switching costs.
    """
    placed = node_of >= 0
    node = np.where(placed, node_of, 0)
    use = np.where(placed, np.minimum(limit, wanted), 0.0)
    total = np.bincount(node, weights=use, minlength=len(capacity))
    full = total > capacity
    speed: Floats = np.where(placed, limit, 0.0)
    if not full.any():
        return speed
    room = np.where(full, capacity * (1 - loss), np.inf)
    level = _levels(use, node, room, full)
    found: Floats = np.minimum(speed, level[node])
    return found


def _levels(use: Floats, node: Ints, room: Floats, full: NDArray[np.bool_]) -> Floats:
    """The level of each full node: what it has left after those who want less, divided by the rest."""
    level = np.where(full, 0.0, np.inf)
    members = full[node] & (use > 0)
    use, node = use[members], node[members]
    for _ in range(_ROUNDS):
        below = use <= level[node]
        taken = np.bincount(node, weights=np.where(below, use, 0.0), minlength=len(room))
        others = np.bincount(node, weights=~below, minlength=len(room))
        with np.errstate(divide="ignore", invalid="ignore"):
            raised = np.where(full & (others > 0), (room - taken) / others, level)
        if np.allclose(raised, level, rtol=1e-6, atol=0.0):
            break
        level = raised
    return level
