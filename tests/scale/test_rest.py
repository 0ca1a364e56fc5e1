"""How long ago a topology's parallelism changed."""

from dataclasses import replace
from math import inf

import pytest

from barograph.model import Cycle, Operator, Outcome, Plan, Refusal, RefusalCode, Rescale, Snapshot
from barograph.scale.rest import since_change_s
from tests.cycles import chain, remembered, seen, work

ORDER = Plan(rescales=(Rescale("t", "s", 2),))


def at(at_s: float, degree: int = 1, name: str = "t") -> Snapshot:
    return seen(chain(Operator("s", degree, source=True), name=name), {"s": work(10)}, at_s=at_s)


def ordered(at_s: float, outcome: Outcome | None = None, degree: int = 1) -> Cycle:
    return replace(remembered(at(at_s, degree), plan=ORDER), outcome=outcome)


HISTORIES: dict[str, tuple[list[Cycle], float]] = {
    "nothing is remembered": ([], inf),
    "nothing changed": ([remembered(at(10)), remembered(at(20))], inf),
    "an order whose outcome is not known": ([ordered(10), remembered(at(20))], 20),
    "an order that took its time": (
        [ordered(10, Outcome(done=("scale",), order_to_commit_s=7.5)), remembered(at(20))],
        12.5,
    ),
    "an order that was refused": (
        [ordered(10, Outcome(refused=(Refusal("t", RefusalCode.STALE, "no"),)))],
        inf,
    ),
    "an order that was left out": (
        [ordered(10, Outcome(left_out=(Refusal("t", RefusalCode.MODE_IMPOSSIBLE, "no", topology="t"),)))],
        inf,
    ),
    "by hand": ([remembered(at(10, degree=3)), remembered(at(20))], 10),
    "by hand, seen only now": ([remembered(at(10, degree=3)), remembered(at(20, degree=3))], 0),
    "an order that held later": (
        [ordered(0, Outcome(done=("scale",)), degree=3), remembered(at(10, degree=3)), remembered(at(20))],
        10,
    ),
    "an order for another topology": (
        [remembered(at(10), plan=Plan(rescales=(Rescale("u", "s", 2),))), remembered(at(20))],
        inf,
    ),
    "a cycle in which it was not there": ([remembered(at(10, degree=3, name="u"))], inf),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_since_change(case: str) -> None:
    history, expected = HISTORIES[case]
    assert since_change_s(history, at(30), "t") == expected


def test_changes_longer_ago_than_asked_are_not_searched() -> None:
    history = [ordered(0), *(remembered(at(10.0 * k)) for k in range(1, 10))]
    now = at(100)
    assert since_change_s(history, now, "t") == 100
    assert since_change_s(history, now, "t", 90) == 100
    assert since_change_s(history, now, "t", 60) == inf
