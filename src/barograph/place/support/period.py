"""How often a placer computes a new schedule. Its reasons record when it last did, so the history is enough."""

from collections.abc import Sequence

from barograph.model import Cycle, Reason, ReasonCode, Snapshot
from barograph.place.support.cluster_arrays import HAIR

COMPUTED_AT = "schedule_computed_at_s"
"""The number that holds the time, in every reason with one of these codes."""
_SAY_WHEN = frozenset(
    {
        ReasonCode.SCHEDULE_NOT_DUE,
        ReasonCode.SCHEDULE_UNMEASURED,
        ReasonCode.SCHEDULE_NEEDED,
        ReasonCode.SCHEDULE_SAME,
        ReasonCode.SCHEDULE_INCOMPLETE,
        ReasonCode.SCHEDULE_GAINS,
        ReasonCode.SCHEDULE_RELIEVES,
        ReasonCode.SCHEDULE_GAINS_LITTLE,
        ReasonCode.SCHEDULE_COMPUTED,
    }
)


def last_computed_s(history: Sequence[Cycle]) -> float | None:
    """When a schedule was last computed, None if no cycle says so. Every cycle repeats it in its reasons."""
    for cycle in reversed(history):
        for reason in cycle.plan.reasons:
            if reason.code in _SAY_WHEN:
                return reason.numbers[COMPUTED_AT]
    return None


def waiting(history: Sequence[Cycle], now: Snapshot, every_s: float) -> Reason | None:
    """Why no schedule is computed now: the last one is less than every_s seconds old. None if one is due."""
    last_s = last_computed_s(history)
    if last_s is None or now.at_s - last_s >= every_s - HAIR:
        return None
    numbers = {COMPUTED_AT: last_s, "waited_s": now.at_s - last_s}
    why = f"kept: the next schedule is computed {every_s:g} s after the last"
    return Reason("cluster", ReasonCode.SCHEDULE_NOT_DUE, why, numbers)
