"""Sending threads, as Storm's workers have one each: every row that leaves a worker goes through that worker's thread.

A row waits there for the rows before it: for the backlog while more come than can be sent, else for rows that
happen to come at the same time (M/D/1): W = s * u / (2 (1 - u)), with s the time of a row in the thread and u the part
of the time in which the thread is busy. The time s itself is part of a hop's delay. The thread's CPU is not counted.
"""

import numpy as np

from barograph.engines.sim.world.layout import Floats

_FORGET_S = 1.0
_MOST_BUSY = 0.98  # the formula is infinite at 1; above this value the backlog counts


class SendingThreads:
    """wait_s: how long a row that leaves each worker waits now."""

    def __init__(self, workers: int, row_s: float) -> None:
        self._row_s = row_s
        self._busy = np.zeros(workers)
        self._left_s = np.zeros(workers)
        self.wait_s: Floats = np.zeros(workers)

    def sent(self, rows: Floats, dt_s: float) -> None:
        """So many rows left each worker in the last dt_s seconds."""
        work_s = rows * self._row_s
        fade = np.exp(-dt_s / _FORGET_S)
        self._busy = fade * self._busy + (1.0 - fade) * work_s / dt_s
        self._left_s = np.maximum(0.0, self._left_s + work_s - dt_s)
        u = np.minimum(self._busy, _MOST_BUSY)
        self.wait_s = np.maximum(self._left_s, self._row_s * u / (2.0 * (1.0 - u)))
