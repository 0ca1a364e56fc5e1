"""Spans of time for the adaptive scaler: in seconds, so that they do not depend on how time is cut into cycles. Pure.

Options of the scaler name numbers of cycles. A cycle means ``SHORT_S`` seconds there, or the usual length of cycles if
that is longer, because nothing can be seen or changed within a part of a cycle. The usual length is the median: one
cycle that a slow change, or a loop that was held up, made long changes no span.
"""

from dataclasses import dataclass

import numpy as np

from barograph.model import Frame

SHORT_S = 2.0


@dataclass(frozen=True, slots=True)
class Spans:
    """unit_s: the seconds for which one cycle of an option stands. now_s: the length of the newest cycle."""

    unit_s: float
    now_s: float

    @staticmethod
    def of(frame: Frame) -> "Spans":
        return Spans(max(SHORT_S, float(np.median(frame.cycle_s))), float(frame.cycle_s[-1]))

    def part(self, cycles: float) -> float:
        """The newest cycle as a multiple of such a span; above 1 if it is longer. What is to be done in the span, times
        this, is as many rows a second whatever the length of the cycle."""
        return self.now_s / (cycles * self.unit_s)

    def back(self, frame: Frame, cycles: int) -> int:
        """How many of the last cycles make up such a span."""
        return frame.window(cycles * self.unit_s)
