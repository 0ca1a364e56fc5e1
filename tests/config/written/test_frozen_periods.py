"""Periods of the week in which nothing is changed: what each form means, and what is said about wrong ones."""

from datetime import UTC, datetime

import pytest

from barograph.config.written.frozen_periods import frozen_period, parse_periods
from barograph.model import BadInput


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# 2026-11-16 is a Monday.
@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("Mo-Fr 08:00-18:00 UTC", ["2026-11-16 08:00", "2026-11-20 17:59"], ["2026-11-16 07:59", "2026-11-20 18:00"]),
        ("mo-fr 08:00-18:00 UTC", ["2026-11-16 08:00"], ["2026-11-21 12:00"]),
        ("Sa,Su UTC", ["2026-11-21 00:00", "2026-11-22 23:59"], ["2026-11-20 23:59", "2026-11-23 00:00"]),
        ("Fr 22:00-06:00 UTC", ["2026-11-20 22:00", "2026-11-21 05:59"], ["2026-11-20 05:00", "2026-11-21 06:00"]),
        ("Su-Mo 10:00-24:00 UTC", ["2026-11-22 23:59", "2026-11-16 10:00"], ["2026-11-17 10:00", "2026-11-17 00:00"]),
        ("18:00-20:00 UTC", ["2026-11-18 19:00", "2026-11-21 19:00"], ["2026-11-18 20:00"]),
        ("Mo 08:00-09:00 Europe/Berlin", ["2026-11-16 07:30", "2026-07-13 06:30"], ["2026-11-16 08:00"]),
        ("Sa UTC; Mo 08:00-09:00 UTC", ["2026-11-21 12:00", "2026-11-16 08:30"], ["2026-11-16 09:30"]),
    ],
)
def test_when_it_holds(text: str, inside: list[str], outside: list[str]) -> None:
    periods = parse_periods(text)
    assert [bool(frozen_period(periods, at(t))) for t in inside] == [True] * len(inside)
    assert [frozen_period(periods, at(t)) for t in outside] == [""] * len(outside)


def test_the_period_is_named_as_it_was_written() -> None:
    periods = parse_periods("Sa UTC ;  Mo-Fr 08:00-18:00 UTC")
    assert frozen_period(periods, at("2026-11-16 08:30")) == "Mo-Fr 08:00-18:00 UTC"


def test_without_a_zone_it_is_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC-3")  # three hours ahead of UTC
    time.tzset()
    try:
        assert frozen_period(parse_periods("Mo 08:00-09:00"), at("2026-11-16 05:30"))
        assert not frozen_period(parse_periods("Mo 08:00-09:00"), at("2026-11-16 08:30"))
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weekends", "is no period of the week: write for example 'Mo-Fr 08:00-18:00'"),
        ("8-18", "is no period of the week"),
        ("UTC", "is no period of the week"),
        ("Mo-Fr 08:00", "is no period of the week"),
        ("Mx 08:00-09:00", "'Mx' in the period 'Mx 08:00-09:00' is no day: write Mo, Tu, We, Th, Fr, Sa, Su"),
        ("Mo-We-Fr", "'Mo-We-Fr' in the period 'Mo-We-Fr' is no range of days"),
        ("08:00-08:00", "has no length"),
        ("24:00-06:00", "has no length"),
        ("08:00-25:00", "25:00 in the period '08:00-25:00' is no time of a day: write 00:00 to 24:00"),
        ("08:60-09:00", "is no time of a day"),
        ("Mo 08:00-09:00 Mars/Olympus", "'Mars/Olympus' in the period .* is no time zone: write for example UTC"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_periods(text)
