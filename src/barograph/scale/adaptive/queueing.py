"""How long rows wait in front of instances, and along a topology: mean and 99th percentile. Arithmetic only.

An instance with the load rho (the part of its time that its rows keep it busy) and the service time s is taken for a
queue with random arrivals and random service times. In the long run a row waits rho s / (1 - rho) on the mean, and one
in a hundred longer than s ln(100 rho) / (1 - rho). Within the time T until shares follow the load again, the queue can
grow by (rho - 1) T on the mean, with a standard deviation of sqrt(2 rho T s); near and above full load this bounds the
wait. Real arrivals are more regular or come in bursts: ``learned.py`` learns by how much, from measured times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from barograph.model import Topology

PART = 0.01  # of the rows, which may take longer than the 99th percentile
_Z99 = 2.326  # standard deviations above the mean, of a normal distribution
_FULL = 1.0 - 1e-6


@dataclass(frozen=True, slots=True)
class Leg:
    """The time of a row at one operator, its service included: the mean, and how far the 99th percentile is above."""

    mean_s: float = 0.0
    above_s: float = 0.0


def leg(load: NDArray[np.float64], rows: NDArray[np.float64], service_s: NDArray[np.float64], span_s: float) -> Leg:
    """One operator. load, rows, service_s: of each instance. span_s: T.

    The 99th percentile is that of its slowest instance, unless that gets less than a hundredth of the rows.
    """
    total = float(rows.sum())
    if total <= 0.0:
        return Leg()
    low, part = np.minimum(load, _FULL), rows / total
    grown_s, drift_s = np.maximum(load - 1.0, 0.0) * span_s, np.sqrt(2.0 * load * span_s * service_s)
    mean_s = np.minimum(low * service_s / (1.0 - low), grown_s / 2.0 + drift_s / 2.0)
    often = np.log(np.maximum(1.0, low / PART))
    late_s = np.minimum(service_s * often / (1.0 - low), grown_s + _Z99 * drift_s)
    mean = float(((mean_s + service_s) * part).sum())
    slowest = float((late_s + service_s)[part >= min(PART, float(part.max()))].max())
    return Leg(mean, max(0.0, slowest - mean))


def path_p99_s(topology: Topology, legs: Mapping[str, Leg]) -> tuple[float, tuple[str, ...]]:
    """The 99th percentile over the slowest path, and the operators of that path.

    Means add up. Rows that are late at one operator are seldom late at the next, so distances from the mean add up as
    those of independent times do: by their squares.
    """
    reached: dict[str, tuple[float, float, tuple[str, ...]]] = {}
    for operator in topology.order:
        before = [reached[p] for p in topology.parents(operator.name)]
        mean_s, square, path = max(before, key=lambda r: r[0] + sqrt(r[1]), default=(0.0, 0.0, ()))
        own = legs.get(operator.name, Leg())
        reached[operator.name] = (mean_s + own.mean_s, square + own.above_s**2, (*path, operator.name))
    mean_s, square, path = max(reached.values(), key=lambda r: r[0] + sqrt(r[1]))
    return mean_s + sqrt(square), path
