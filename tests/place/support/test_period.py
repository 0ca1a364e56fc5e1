"""When a schedule was last computed, read from what earlier cycles gave as their reasons."""

import pytest
from tests.cycles import nodes, remembered

from barograph.model import Cycle, Plan, Reason, ReasonCode, Snapshot
from barograph.place.support.period import COMPUTED_AT, last_computed_s, waiting

NOW = Snapshot(100, 10, nodes(), ())


def said(at_s: float) -> Cycle:
    taken = Reason("cluster", ReasonCode.SCHEDULE_GAINS, "taken", {COMPUTED_AT: at_s})
    return remembered(NOW, plan=Plan(reasons=(Reason("t", ReasonCode.OTHER, "else"), taken)))


def test_the_last_cycle_that_says_it_counts() -> None:
    assert last_computed_s([said(10), said(40)]) == 40


def test_it_is_found_behind_cycles_that_decided_nothing() -> None:
    assert last_computed_s([said(40), remembered(NOW), remembered(NOW)]) == 40


def test_no_cycle_says() -> None:
    assert last_computed_s([remembered(NOW)]) is None
    assert waiting([remembered(NOW)], NOW, 30) is None


@pytest.mark.parametrize(("last_s", "due"), [(40, True), (70, True), (70 - 1e-9, True), (70.1, False), (100, False)])
def test_a_schedule_is_due_when_the_last_is_old_enough(last_s: float, due: bool) -> None:
    why = waiting([said(last_s)], NOW, 30)
    assert (why is None) == due
    if why is not None:
        assert why.numbers == {COMPUTED_AT: last_s, "waited_s": 100 - last_s}
