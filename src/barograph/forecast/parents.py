"""What an operator's parents will send it (Liu et al.): sum over parents p of psi_p * rho_p, in topological order.

rho_p: rows sent to this child per row executed, mean over phi cycles of the ratios; a parent with several children
counts, per child, only the rows sent to that child. delta_p = executed - arrived, mean over phi cycles;
psi_p = max(0, L_p + delta_p) is what p will execute. Sources have no parents: their own trend is used.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from barograph.forecast.protocol import ByFrame, Estimate
from barograph.forecast.trend import own_trend
from barograph.model import Frame, mean_of_ratios, rises


def mean_delta(frame: Frame, phi: int) -> NDArray[np.float64]:
    seen = frame.seen[-phi:]
    delta = np.where(seen, (frame.paced("executed") - frame.paced("arrived"))[-phi:], 0.0)
    mean: NDArray[np.float64] = delta.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return mean


def passed_on(frame: Frame, phi: int) -> NDArray[np.float64]:
    """rho of every link; 0 where the parent never executed a row."""
    if not frame.links:
        return np.zeros(0)
    executed = frame.column("executed")[:, [link.parent for link in frame.links]]
    return np.nan_to_num(mean_of_ratios(frame.sent, executed, phi), nan=0.0)


def down_the_graph(
    frame: Frame, phi: int, arrivals: Callable[[int, float | None], float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """L, psi and what the parents send, operator by operator in topological order.

    arrivals(position, from_parents) returns L, given the sum over the parents; None for an operator without parents.
    """
    rho = passed_on(frame, phi).tolist()
    delta = mean_delta(frame, phi).tolist()
    feeding: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for link, ratio in zip(frame.links, rho, strict=True):
        feeding[link.child].append((link.parent, ratio))
    arrived, psi, sent = ([0.0] * len(frame.keys) for _ in range(3))
    for i in range(len(frame.keys)):
        from_parents = sum(psi[p] * ratio for p, ratio in feeding[i]) if feeding[i] else None
        sent[i] = np.nan if from_parents is None else from_parents
        arrived[i] = max(0.0, arrivals(i, from_parents))
        psi[i] = max(0.0, arrived[i] + delta[i])
    return np.array(arrived), np.array(psi), np.array(sent)


@dataclass(frozen=True)
class Parents(ByFrame):
    """phi: cycles of history behind the ratios and, for sources, the trend."""

    phi: int = 5
    name: ClassVar[str] = "parents"

    def estimate(self, frame: Frame, horizon_cycles: int) -> Estimate:
        line = own_trend(frame, self.phi)
        own = line.at(horizon_cycles).tolist()
        arrived, psi, _ = down_the_graph(frame, self.phi, lambda i, sent: own[i] if sent is None else sent)
        now = frame.column("arrived")[-1]
        rising = np.where(frame.sources, line.rising, rises(arrived - now, now))
        delta = mean_delta(frame, self.phi)
        return Estimate(arrived, psi, rising, "what its parents will send it", {"delta_rows": delta})
