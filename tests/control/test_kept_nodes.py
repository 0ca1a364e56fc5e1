"""Nodes that a driver does not release or fetch as ordered: the history and the log say that they stayed, and why."""

import logging
from pathlib import Path

import pytest
from tests.control.test_loop import UPKEEP, Sleepy, settings, with_idle_nodes

from barograph.control.node_pool import NodeOrders, Upkeep
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.history import Recorder, cycles
from barograph.logs import FIELDS
from barograph.model import Outcome, RefusalCode


class Keeping(Sleepy):
    """A driver that releases no node: it says why, or does not answer."""

    failing = False

    def nodes(self, orders: NodeOrders) -> Outcome:
        self.told.append(orders)
        if self.failing:
            raise TimeoutError("nothing came")
        return orders.not_done(RefusalCode.NODE_IN_USE, "a task runs there")


@pytest.mark.parametrize(
    ("failing", "code"), [(False, RefusalCode.NODE_IN_USE), (True, RefusalCode.NO_ANSWER)], ids=["refused", "no answer"]
)
def test_a_node_that_the_driver_keeps_is_recorded_and_logged_as_kept(
    failing: bool, code: RefusalCode, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Keeping()
    loop = with_idle_nodes(engine)
    loop.settings, engine.failing = settings(upkeep=UPKEEP), failing
    loop._recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: 0.0)
    with caplog.at_level(logging.DEBUG, "barograph.control.decision_log"):
        while not engine.told:
            loop.turn()
    (asked,) = engine.told
    (node,) = asked.release
    last = list(cycles(tmp_path))[-1]
    assert last.outcome is not None and last.outcome.ok
    assert [(r.node, r.code) for r in last.outcome.left_out] == [(node, code)]
    assert not any(node in sentence for sentence in last.outcome.done)
    line = getattr(caplog.records[-1], FIELDS)
    assert (line["released"], line["left_out"]) == ([], [{"what": f"release of {node}", "code": code}])
    shown = [d.line for d in RecordedDecisions(tmp_path).new() if d.line is not None]
    assert shown[-1].released == (), "a history says the same as the log"


def test_a_fetch_that_the_driver_refuses_after_a_refused_plan_is_left_out() -> None:
    engine = Keeping()
    loop = with_idle_nodes(engine)
    engine.asleep, engine.refuses = ("n-1",), True
    loop.settings = settings(upkeep=Upkeep(None))
    outcome = loop.turn().outcome
    assert outcome is not None and [r.code for r in outcome.refused] == [RefusalCode.STALE]
    assert [(r.what, r.code) for r in outcome.left_out] == [("fetch of n-1", RefusalCode.NODE_IN_USE)]
