"""Smoothing of CPU shares (Liu et al.): up at once, down only by at least theta/2, rounded up to multiples of theta.

The value *held* rises with the demand at once and falls only when the decrease against it reaches theta/2. Allotted is
ceil((held + theta/2) / theta) * theta, at most what one instance can use.
"""

from barograph.scale.protocol import ceil


def hold(demand_pct: float, held_pct: float | None, theta_pct: float) -> float:
    """The new held value; held_pct is None if nothing was held."""
    if held_pct is None or demand_pct >= held_pct or held_pct - demand_pct >= theta_pct / 2 - 1e-9:
        return demand_pct
    return held_pct


def allotted(held_pct: float, theta_pct: float, limit_pct: float) -> float:
    return min(ceil((held_pct + theta_pct / 2) / theta_pct) * theta_pct, limit_pct)
