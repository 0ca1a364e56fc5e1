"""How far ahead a controller forecasts. Pure."""

from collections.abc import Sequence

from barograph.model import Cycle
from barograph.policy.definition import Policy

LEARNED = 5  # how many of the last changes are used to estimate how long one takes


def horizon_cycles(policy: Policy, cycle_s: float, history: Sequence[Cycle]) -> int:
    """How far ahead to forecast: the policy's horizon plus the time that recent changes took to take effect."""
    took = [
        c.outcome.order_to_commit_s
        for c in history
        if c.outcome is not None and c.outcome.ok and c.outcome.order_to_commit_s is not None
    ][-LEARNED:]
    pause_s = max(took, default=0.0)
    return policy.horizon_cycles + int(pause_s / cycle_s + 0.5)
