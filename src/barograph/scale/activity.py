"""Local and global activity levels: the arithmetic of AUTOSCALE (Kombi et al.), without history.

LAL = EstimInput / EstimCapacity of an operator by itself; GAL = the same with the outputs of critical parents
taken into account. low <= theta_min < medium <= theta_max < high <= 1 < critical.
"""

from dataclasses import dataclass
from enum import StrEnum

from barograph.model import slope_of
from barograph.scale.protocol import ceil


class Activity(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class ScaleDirection(StrEnum):
    """Fewer instances, as many, or more."""

    IN = "in"
    NONE = "none"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class Thresholds:
    theta_min: float = 0.3
    theta_max: float = 0.8

    def activity(self, level: float) -> Activity:
        if level <= self.theta_min:
            return Activity.LOW
        if level <= self.theta_max:
            return Activity.MEDIUM
        return Activity.HIGH if level <= 1 else Activity.CRITICAL


def decision(activity: Activity, rising: bool) -> ScaleDirection:
    """The decision matrix. Low but rising: no change; high but not rising: no change; critical: always out."""
    if activity is Activity.LOW:
        return ScaleDirection.NONE if rising else ScaleDirection.IN
    if activity is Activity.HIGH:
        return ScaleDirection.OUT if rising else ScaleDirection.NONE
    return ScaleDirection.OUT if activity is Activity.CRITICAL else ScaleDirection.NONE


def new_degree(
    degree: int,
    gal: float,
    rising: bool,
    least: int,
    most: int | None,
    thresholds: Thresholds,
    aim_at_theta_max: bool = False,
) -> int:
    """The degree after the decision: one more where activity is high, else ceil(degree * GAL), within its bounds.

    aim_at_theta_max is not in the paper: ceil(degree * GAL / theta_max), so that an operator is not sized for 100 %
    load, which would be "high" again at once.
    """
    activity = thresholds.activity(gal)
    if decision(activity, rising) is ScaleDirection.NONE:
        return degree
    if activity is Activity.HIGH:
        wanted = degree + 1
    else:
        wanted = ceil(degree * gal / (thresholds.theta_max if aim_at_theta_max else 1.0))
        if activity is Activity.LOW:  # sizing for theta_max must not turn "in" into "out"
            wanted = min(wanted, degree)
    if most is not None:
        wanted = min(wanted, most)
    return max(wanted, least, 1)


def capacity_drift(per_instance: list[float], degree: int, bound: float = 0.2) -> float:
    """eps, the recent drift of an operator's capacity in rows per window: the least-squares slope of capacity per
    instance over the last windows (oldest first) x degree, at most ``bound`` of the present capacity, up or down.

    The paper's covariance has the wrong unit and no sign, hence the slope. 0 with fewer than three windows.
    """
    if len(per_instance) < 3:
        return 0.0
    most = bound * per_instance[-1] * degree
    return max(-most, min(most, slope_of(per_instance) * degree))
