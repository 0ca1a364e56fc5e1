"""Which executors are hung, judged by how long ago each last reported. Pure: it ends nothing and reads no clock.

An executor reports at least once a second. One that is silent while others report is hung. If the look itself comes
late, the driver or the whole machine was stopped or starved: then silence says nothing. If none reports, that may be a
slow network: then silence must last longer, and the driver must have looked in time all the while.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FRESH_S = 3.0
"""Executors that reported within this time show that reports reach the driver."""
LATE_S = 3.0
"""A look that comes so long after the one before is late: it should come once a second."""
GRACE_S = 3.0
"""After a late look executors have this long to report."""
ALONE = 1.5
"""Where none reports, all of them are hung after so many times the longest silence that is in order."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """hung: executors to end. spared: executors that are silent for too long but are not ended; because: why not."""

    hung: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    because: str = ""


class Silence:
    """Judges one look after the other. hung_after_s: the longest silence that is in order."""

    def __init__(self, hung_after_s: float) -> None:
        self._hung_after_s = hung_after_s
        self._looked_s: float | None = None
        self._spare_until_s = 0.0
        self._late_by_s = 0.0
        self._in_time_since_s = float("inf")

    def judge(self, ages_s: Mapping[str, float], now_s: float) -> Judgement:
        """ages_s: of every live executor that has reported. now_s: on a monotonic clock, when they were known."""
        since_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        if self._looked_s is None or since_s > LATE_S:
            self._in_time_since_s = now_s
        self._looked_s = now_s
        if since_s > LATE_S:
            self._spare_until_s, self._late_by_s = now_s + GRACE_S, since_s
        silent = tuple(sorted(e for e, age_s in ages_s.items() if age_s >= self._hung_after_s))
        if not silent:
            return Judgement()
        if now_s < self._spare_until_s:
            return Judgement((), silent, f"the driver itself did not run for {self._late_by_s:.0f} s")
        if any(age_s <= FRESH_S for age_s in ages_s.values()):
            return Judgement(silent)
        longest_s = ALONE * self._hung_after_s
        if now_s - self._in_time_since_s >= longest_s and min(ages_s.values()) >= longest_s:
            return Judgement(silent)
        return Judgement((), silent, f"no executor reports, so the network may be slow; after {longest_s:g} s they are")
