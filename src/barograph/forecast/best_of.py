"""Scores forecasters on the topology's own history and uses, per operator and horizon, the one with the least error.

For each of the last cycles the candidates forecast again from what was known ``horizon`` cycles before it; the mean
absolute error decides, ties go to the first listed. The scores are recomputed from the history each time, so there is
no state to keep and the same history always gives the same choice.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from barograph.forecast.autoscale import NextWindow
from barograph.forecast.holt import Holt
from barograph.forecast.last_value import LastValue
from barograph.forecast.parents import Parents
from barograph.forecast.protocol import ByFrame, Estimate
from barograph.forecast.trend import Trend
from barograph.forecast.trend_or_parents import TrendOrParents
from barograph.model import Frame


@dataclass(frozen=True)
class BestOf(ByFrame):
    """scored_cycles: how many of the last cycles are forecast again to score the candidates; more for far horizons."""

    candidates: tuple[ByFrame, ...] = (LastValue(), Trend(), Holt(), Parents(), TrendOrParents(), NextWindow())
    scored_cycles: int = 12
    name: ClassVar[str] = "best-of"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        now = [c.estimate(frame, horizon_cycles) for c in self.candidates]
        error, count = self._errors(frame, horizon_cycles)
        best = np.argmin(error, axis=0)
        operators = np.arange(len(frame.keys))

        def pick(values: list[NDArray[Any]]) -> NDArray[Any]:
            return np.stack(values)[best, operators] if len(operators) else values[0]

        why = [
            f"{self.candidates[b].name} had the least error in the last {c} cycles"
            for b, c in zip(best, count, strict=True)
        ]
        numbers = {f"error_rows_{c.name}": error[k] for k, c in enumerate(self.candidates)}
        arrived = pick([e.arrived for e in now])
        return Estimate.of_arrivals(arrived, pick([e.rising for e in now]), why, numbers, pick(list(error)))

    def _errors(self, frame: Frame, horizon_cycles: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean absolute error of each candidate on each operator, and from how many cycles it was computed."""
        total = np.zeros((len(self.candidates), len(frame.keys)))
        count = np.zeros(len(frame.keys), dtype=np.int64)
        scored = max(self.scored_cycles, 5 * horizon_cycles)  # far ahead, errors of neighbouring cycles are correlated
        first = max(horizon_cycles, len(frame) - scored)
        actual = frame.column("arrived")
        _ = frame.sent  # computed once here, shared by all the shortened frames below
        for cycle in range(first, len(frame)):
            known = frame.until(cycle - horizon_cycles + 1)
            counts = frame.seen[cycle] & known.seen.any(axis=0)
            count += counts
            expected = actual[cycle] * (known.cycle_s[-1] / frame.cycle_s[cycle])  # in a cycle as long as the known one
            for k, candidate in enumerate(self.candidates):
                off = np.abs(candidate.estimate(known, horizon_cycles).arrived - expected)
                total[k] += np.where(counts, off, 0.0)
        return total / np.maximum(count, 1), count
