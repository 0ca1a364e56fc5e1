"""How much an operator's load grows within some time, by the straight line through its last 90 seconds. Pure."""

from collections.abc import Sequence

import numpy as np

from barograph.model import Cycle, Snapshot

LOOK_S = 90.0
AHEAD_S = 150.0  # how far ahead to look: a placement that fits for less time is not worth its pause
_FEWEST = 4  # cycles; fewer show no trend


def growth_within(history: Sequence[Cycle], now: Snapshot, topology: str, operator: str, ahead_s: float) -> float:
    """The load after ahead_s seconds, as a multiple of the present one; 1 if it does not grow."""
    times, rates = [], []
    for snapshot in (now, *(c.snapshot for c in reversed(history))):
        seen = (topology, operator) in snapshot.metrics.rows_of_operator
        if now.at_s - snapshot.at_s > LOOK_S or not seen:
            break
        times.append(snapshot.at_s - now.at_s)
        rates.append(snapshot.metrics.of_operator(topology, operator).arrived / snapshot.cycle_s)
    if len(times) < _FEWEST:
        return 1.0
    at, rate = np.array(times), np.array(rates)
    spread = float(((at - at.mean()) ** 2).sum())
    slope = float(((at - at.mean()) * (rate - rate.mean())).sum()) / spread if spread > 0 else 0.0
    present = float(rate.mean() + slope * (0.0 - at.mean()))
    return 1.0 + max(0.0, slope * ahead_s / present) if present > 0 else 1.0
