"""How fast each instance runs: at its limit, or, where a node's instances want more than it has, at an equal level.

Linux gives each runnable thread of a core an equal part, so on a full node an instance runs at a level while it has
work. That takes from neighbours in two ways:

- CPU: one that needs more than the level falls behind, however much was declared for it. The more threads of a surging
  neighbour want CPU, the lower the level is.
- time: one that needs less keeps its rate, but its thread sleeps between rows, and each time it wakes it waits until
  every runnable thread before it has run for a slice. At a level of L there are 1/L runnable threads for each core, so
  the wait is slice * (1/L - 1). A thread that always has work does not sleep and so does not wait.

Limits prevent both: as long as the limits on a node add up to no more than it has, it is never full. Not modelled: the
garbage collector and the network threads of a worker, which compete as well.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.engines.sim.world.layout import Floats, Ints

_ROUNDS = 12
_LEAST_LEVEL = 1e-3  # cores: bounds the number of threads that one waits for


_FORGET_S = 0.7
_RAMP = 1.25  # by this factor the rows that find room may grow from one step to the next


class Appetite:
    """The CPU that instances want: for rows that wait or came lately, as far as there is room downstream.

    Rates are the largest recent ones, forgotten within a second or two, so a full node stays full between two bursts.
    """

    def __init__(self, n: int) -> None:
        self._arriving = np.zeros(n)
        self._passed = np.full(n, np.inf)

    def saw(self, arrived: Floats, passed: Floats, dt_s: float) -> None:
        """arrived: rows. passed: rows that found room, infinite where there was room for all."""
        fade = np.exp(-dt_s / _FORGET_S)
        self._arriving = np.maximum(arrived / dt_s, fade * self._arriving)
        before = np.where(np.isfinite(self._passed), self._passed, 0.0)
        self._passed = np.where(np.isfinite(passed), np.maximum(passed / dt_s, fade * before), np.inf)

    def cores(self, waiting: Floats, unit_s: Floats, dt_s: float) -> Floats:
        rows = np.minimum(waiting / dt_s + self._arriving, _RAMP * self._passed + 1.0 / dt_s)
        found: Floats = rows * unit_s
        return found


class ReceivedRate:
    """Rows a second that each instance executed lately, over the time in which it was not idle, as measured on Spark.

    So the rate of an instance that waits for room downstream is that of what it waits for. window_s: how much time
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
        """able: rows a second each could execute, used for an instance that has executed nothing yet."""
        known = self._spent_s > 1e-3
        found: Floats = np.where(known, np.minimum(able, self._rows / np.where(known, self._spent_s, 1.0)), able)
        return found


@dataclass(frozen=True, slots=True)
class CpuPace:
    """What instances get of their nodes now. speed: cores of each while it has work.

    wait_s: how long a row that finds its instance asleep waits until the thread runs; None where no node is full.
    """

    speed: Floats
    wait_s: Floats | None = None


def pace(limit: Floats, wanted: Floats, node_of: Ints, capacity: Floats, loss: float, slice_s: float) -> CpuPace:
    """limit: the most an instance may use, in cores. wanted: what it would use, in cores. capacity: cores of each node.

    loss: the part of a full node's CPU lost to switching. slice_s: how long a thread runs before the next one.
    """
    placed = node_of >= 0
    node = np.where(placed, node_of, 0)
    use = np.where(placed, np.minimum(limit, wanted), 0.0)
    total = np.bincount(node, weights=use, minlength=len(capacity))
    full = total > capacity
    speed: Floats = np.where(placed, limit, 0.0)
    if not full.any():
        return CpuPace(speed)
    room = np.where(full, capacity * (1 - loss), np.inf)
    level = _levels(use, node, room, full)
    before = np.maximum(0.0, 1.0 / np.maximum(level, _LEAST_LEVEL) - 1.0)  # threads that have their turn first
    return CpuPace(np.minimum(speed, level[node]), slice_s * before[node])


def _levels(use: Floats, node: Ints, room: Floats, full: NDArray[np.bool_]) -> Floats:
    """The level of each full node: what it has left after the instances that want less, divided by the others."""
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
