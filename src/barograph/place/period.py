"""How often a placer computes a schedule anew. Its reasons say when it last did, so the history is all it needs."""

from collections.abc import Sequence

from barograph.model import Cycle, Reason, Snapshot
from barograph.place.board import HAIR

COMPUTED_AT = "schedule_computed_at_s"


def last_computed_s(history: Sequence[Cycle]) -> float | None:
    """When a schedule was last computed, None where no cycle says. Every cycle repeats it in its reasons."""
    for cycle in reversed(history):
        for reason in cycle.plan.reasons:
            if COMPUTED_AT in reason.numbers:
                return reason.numbers[COMPUTED_AT]
    return None


def waiting(history: Sequence[Cycle], now: Snapshot, every_s: float) -> Reason | None:
    """Why no schedule is computed now: the last one is less than every_s seconds old. None where one is due."""
    last_s = last_computed_s(history)
    if last_s is None or now.at_s - last_s >= every_s - HAIR:
        return None
    numbers = {COMPUTED_AT: last_s, "waited_s": now.at_s - last_s}
    return Reason("cluster", f"kept: the next schedule is computed {every_s:g} s after the last", numbers)
