"""Plans do not pile up behind one that takes long."""

import threading

import pytest

from barograph.engines.spark.driver.one_plan import OnePlan
from barograph.model import Outcome, Plan, RefusalCode


def test_a_plan_behind_one_that_takes_long_is_refused_and_the_next_is_not() -> None:
    began, go_on = threading.Event(), threading.Event()
    applied: list[Plan] = []

    def apply(plan: Plan) -> Outcome:
        applied.append(plan)
        began.set()
        assert go_on.wait(20)
        return Outcome(done=("all",))

    one = OnePlan(apply, wait_s=0.05)
    found: list[Outcome] = []
    slow = threading.Thread(target=lambda: found.append(one(Plan(cuts=("a",)))))
    slow.start()
    assert began.wait(20)
    second = one(Plan(cuts=("b",)))
    assert [r.code for r in second.refused] == [RefusalCode.BUSY]
    assert "an earlier plan is still being applied, for 0 s now" in second.refused[0].reason
    go_on.set()
    slow.join()
    assert found == [Outcome(done=("all",))]
    assert one(Plan(cuts=("c",))).ok
    assert applied == [Plan(cuts=("a",)), Plan(cuts=("c",))], "the refused plan was never applied"


def test_a_plan_that_fails_does_not_block_the_next() -> None:
    def apply(plan: Plan) -> Outcome:
        if plan.cuts == ("bad",):
            raise RuntimeError("it failed")
        return Outcome(done=("all",))

    one = OnePlan(apply, wait_s=0.05)
    with pytest.raises(RuntimeError, match="it failed"):
        one(Plan(cuts=("bad",)))
    assert one(Plan()).ok
