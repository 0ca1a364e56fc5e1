"""Periods of the week in which nothing is changed, as their owner writes them. Pure: the time is an argument.

    Mo-Fr 08:00-18:00                  on working days
    Fr 22:00-06:00                     over midnight: a period belongs to the day on which it begins
    Sa,Su                              whole days
    18:00-20:00                        every day
    Mo-Fr 08:00-18:00 Europe/Berlin    in that time zone; without one, in the local time of the controller's machine
    Sa; Mo-Fr 08:00-18:00              several, separated by a semicolon

Days are Mo Tu We Th Fr Sa Su, one, a range or a list. Times are HH:MM; 24:00 is the end of a day.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barograph.model import BadInput

DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
_DAY_MIN = 24 * 60
_PIECE = re.compile(
    r"(?P<days>[A-Za-z]{2}(?:[-,][A-Za-z]{2})*\b)?\s*(?P<times>\d\d:\d\d-\d\d:\d\d)?(?:\s+(?P<zone>[A-Za-z_+\-/0-9]{3,}))?"
)
_EXAMPLE = "write for example 'Mo-Fr 08:00-18:00' or 'Sa,Su; 22:00-06:00 UTC'"


@dataclass(frozen=True, slots=True)
class FrozenPeriod:
    """days: 0 is Monday. begin_min, end_min: since midnight; an end that is not after the beginning is on the next day.

    zone: None for the local time of this machine."""

    text: str
    days: frozenset[int]
    begin_min: int
    end_min: int
    zone: tzinfo | None

    def holds(self, wall_s: float) -> bool:
        """Whether this moment, in seconds since 1970, lies in it."""
        at = datetime.fromtimestamp(wall_s, UTC).astimezone(self.zone)
        minute, yesterday = at.hour * 60 + at.minute, (at - timedelta(days=1)).weekday()
        if self.begin_min < self.end_min:
            return at.weekday() in self.days and self.begin_min <= minute < self.end_min
        tonight = at.weekday() in self.days and minute >= self.begin_min
        return tonight or (yesterday in self.days and minute < self.end_min)


def parse_periods(text: str) -> tuple[FrozenPeriod, ...]:
    """Raises BadInput, in one sentence, where it cannot be understood."""
    return tuple(_parsed(piece.strip()) for piece in text.split(";") if piece.strip())


def frozen_period(periods: tuple[FrozenPeriod, ...], wall_s: float) -> str:
    """The period in which this moment lies, as it was written; empty if it lies in none."""
    return next((p.text for p in periods if p.holds(wall_s)), "")


def _parsed(piece: str) -> FrozenPeriod:
    found = _PIECE.fullmatch(piece)
    if found is None or not (found["days"] or found["times"]):
        raise BadInput(f"{piece!r} is no period of the week: {_EXAMPLE}")
    begin_min, end_min = 0, _DAY_MIN
    if found["times"]:
        begin_min, end_min = (_minutes(piece, t) for t in found["times"].split("-"))
        if begin_min in (end_min, _DAY_MIN):
            raise BadInput(f"the period {piece!r} has no length: {_EXAMPLE}")
    return FrozenPeriod(piece, _days(piece, found["days"]), begin_min, end_min, _zone(piece, found["zone"]))


def _minutes(piece: str, text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or hours * 60 + minutes > _DAY_MIN:
        raise BadInput(f"{text} in the period {piece!r} is no time of a day: write 00:00 to 24:00")
    return hours * 60 + minutes


def _days(piece: str, text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, *last = (_day(piece, name) for name in part.split("-"))
        if len(last) > 1:
            raise BadInput(f"{part!r} in the period {piece!r} is no range of days: write for example Mo-Fr")
        to = last[0] if last else first
        found |= {(first + n) % 7 for n in range((to - first) % 7 + 1)}
    return frozenset(found)


def _day(piece: str, name: str) -> int:
    if name.capitalize() not in DAYS:
        raise BadInput(f"{name!r} in the period {piece!r} is no day: write {', '.join(DAYS)}")
    return DAYS.index(name.capitalize())


def _zone(piece: str, name: str | None) -> tzinfo | None:
    if name is None:
        return None
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        why = f"{name!r} in the period {piece!r} is no time zone: write for example UTC or Europe/Berlin"
        raise BadInput(why) from None
