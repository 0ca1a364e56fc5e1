"""Triggers that options ask for: by rate and by values, together, and beside a user who turns the trigger on."""

import pytest

from barograph.config import resolve
from barograph.model import BadInput
from barograph.priority.declared_triggers import DeclaredTriggers, TriggerWishes
from barograph.priority.triggers import RateTrigger, RawEventTrigger

BOTH = DeclaredTriggers(RateTrigger(100.0, 3.0, 0.8, 5.0), RawEventTrigger(30.0))


def test_options_say_which_there_are() -> None:
    assert not DeclaredTriggers.of(resolve())
    found = DeclaredTriggers.of(resolve(mapping={"priority.rate": 2000, "priority.rate-for": "5s"}))
    assert found == DeclaredTriggers(RateTrigger(2000.0, 5.0, 0.8, 10.0)) and found
    found = DeclaredTriggers.of(
        resolve(spark={"spark.barograph.priority.above": "-5", "spark.barograph.priority.level": "3"})
    )
    assert found == DeclaredTriggers(raw_event=RawEventTrigger(-5.0), level=3)
    with pytest.raises(BadInput, match=r"priority.above-off-part .* is above priority.above-part"):
        resolve(mapping={"priority.above-part": 0.4})


def test_it_is_on_while_one_of_the_rules_wishes_it() -> None:
    wishes, on = TriggerWishes(BOTH), False
    story = []
    for at_s in range(30):
        rate = 150.0 if 2 <= at_s < 10 else 10.0
        turned = wishes.rate_seen(float(at_s), rate, on)
        if at_s == 12:
            turned = wishes.values_seen([40.0, 50.0], on) or turned
        if at_s == 20:
            turned = wishes.values_seen([1.0, 2.0], on)
        if turned is not None:
            on = turned
            story.append((at_s, on))
    assert story == [(4, True), (20, False)], "values keep it on when the rate falls"


def test_what_a_user_turned_on_stays_on() -> None:
    wishes = TriggerWishes(BOTH)
    assert [wishes.rate_seen(float(s), 1.0, on=True) for s in range(20)] == [None] * 20
    assert wishes.values_seen([1.0], on=True) is None


def test_values_must_be_numbers_and_asked_for() -> None:
    with pytest.raises(BadInput, match="a value of a batch must be a number"):
        TriggerWishes(BOTH).values_seen(["hot"], on=False)  # type: ignore[list-item]
    with pytest.raises(BadInput, match="set the option priority"):
        TriggerWishes(DeclaredTriggers(RateTrigger(1.0))).values_seen([1.0], on=False)
