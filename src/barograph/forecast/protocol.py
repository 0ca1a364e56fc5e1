"""The interface of a forecaster, and the base class of ours: an estimate from a frame of cycles.

A forecaster says how many rows each operator will get; it decides nothing about instances, shares or nodes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Forecast, Frame, OperatorForecast, Reason, ReasonCode, Snapshot
from barograph.model.checks import require_whole


class Forecaster(Protocol):
    """Called once a cycle, before all other stages. ``history`` holds the earlier cycles, oldest first.

    horizon_cycles: for which cycle; 1 is the coming one. The result names every operator of ``now`` and is never
    negative; without any measurement it is 0.
    """

    def __call__(self, history: Sequence[Cycle], now: Snapshot, horizon_cycles: int) -> Forecast: ...


@dataclass(frozen=True, eq=False)
class Estimate:
    """One number per operator of a frame: rows sent to it (L), rows it has to execute (psi), whether L is rising.

    why: one sentence for all, or one for each. numbers: the values behind the estimate, one array each. error_rows: the
    recent error of such estimates, where that is known.
    """

    arrived: NDArray[np.float64]
    executed: NDArray[np.float64]
    rising: NDArray[np.bool_]
    why: str | Sequence[str]
    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    error_rows: NDArray[np.float64] | None = None

    @staticmethod
    def of_arrivals(
        arrived: NDArray[np.float64],
        rising: NDArray[np.bool_],
        why: str | Sequence[str],
        numbers: Mapping[str, NDArray[np.float64]],
        error_rows: NDArray[np.float64] | None = None,
    ) -> "Estimate":
        """For forecasters that forecast arrivals only: the rows to execute are the rows that arrive."""
        never_negative = np.maximum(arrived, 0.0)
        return Estimate(never_negative, never_negative, rising, why, numbers, error_rows)


class ByFrame(ABC):
    """A forecaster that needs only the measurements of the last cycles."""

    name: ClassVar[str]

    @abstractmethod
    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        """For every operator of the frame; its last cycle is the present one."""

    def __call__(self, history: Sequence[Cycle], now: Snapshot, horizon_cycles: int) -> Forecast:
        require_whole("horizon_cycles", horizon_cycles, 1)
        frame = Frame.of(history, now)
        return as_forecast(frame, self.estimate(frame, horizon_cycles), horizon_cycles)


def as_forecast(frame: Frame, estimate: Estimate, horizon_cycles: int) -> Forecast:
    names = list(estimate.numbers)
    numbers = np.stack([estimate.numbers[n] for n in names]) if names else np.zeros((0, len(frame.keys)))
    now = frame.column("arrived")[-1]
    found = []
    for i, (topology, operator) in enumerate(frame.keys):
        why = estimate.why if isinstance(estimate.why, str) else estimate.why[i]
        behind = {n: float(v) for n, v in zip(names, numbers[:, i], strict=True) if np.isfinite(v)}
        behind |= {"arrived_now": float(now[i]), "horizon_cycles": float(horizon_cycles)}
        found.append(
            OperatorForecast(
                topology,
                operator,
                float(estimate.arrived[i]),
                float(estimate.executed[i]),
                bool(estimate.rising[i]),
                Reason(f"{topology}/{operator}", ReasonCode.FORECAST, why, behind),
                0.0 if estimate.error_rows is None else float(estimate.error_rows[i]),
            )
        )
    return Forecast(tuple(found))
