"""Built-in triggers: when a topology should get a higher level, and when it no longer should. Pure.

Each has hysteresis: it turns off at a lower value than it turned on at. A third trigger is a call from
the user's own code, which needs no rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.config import default
from barograph.model.checks import require, require_number, require_positive


@dataclass(frozen=True, slots=True)
class RateTrigger:
    """Arrivals above a rate for some seconds. Off below off_part of it for off_s."""

    rows_s: float
    seconds: float = default("priority.rate-for")
    off_part: float = default("priority.rate-off-part")
    off_s: float = default("priority.rate-off-for")

    def __post_init__(self) -> None:
        require_positive("trigger: rows_s", self.rows_s)
        require_positive("trigger: seconds", self.seconds)
        require_positive("trigger: off_s", self.off_s)
        require_number("trigger: off_part", self.off_part)
        require(self.off_part <= 1, f"trigger: off_part must be at most 1, not {self.off_part!r}")

    def wish(self, samples: Sequence[tuple[float, float]], on: bool) -> bool:
        """samples: (at_s, rows a second until then), oldest first. Whether the trigger should be on."""
        if not samples:
            return on
        window_s = self.off_s if on else self.seconds
        start_s = samples[-1][0] - window_s
        inside = [rate for at_s, rate in samples if at_s > start_s]
        # Only if the whole of the window was watched: the sample before it ends at its start or earlier.
        whole = samples[0][0] <= start_s
        if on:
            return not (whole and all(rate < self.off_part * self.rows_s for rate in inside))
        return whole and all(rate > self.rows_s for rate in inside)


@dataclass(frozen=True, slots=True)
class RawEventTrigger:
    """A raw event: at least ``share`` of a batch's rows are above a value. Off once fewer than off_share are."""

    above: float
    share: float = default("priority.above-part")
    off_share: float = default("priority.above-off-part")

    def __post_init__(self) -> None:
        for name in ("share", "off_share"):
            require_number(f"trigger: {name}", getattr(self, name))
        require(self.off_share <= self.share <= 1, "trigger: off_share must be at most share, and share at most 1")

    def wish(self, values: Sequence[float], on: bool) -> bool:
        """values: of the batch's rows. Whether the trigger should be on."""
        if not values:
            return on
        seen = sum(v > self.above for v in values) / len(values)
        return seen >= self.off_share if on else seen >= self.share
