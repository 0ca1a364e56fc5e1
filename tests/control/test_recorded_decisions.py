"""Decisions from a history are those that the log of its controller has, also while it is being written."""

import logging
from pathlib import Path

import pytest
from tests.control.test_loop import Timed, settings

from barograph.control.loop import Loop
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.history import Recorder


def test_the_same_decisions_as_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: 7.0)
    loop = Loop(Timed(), settings(), recorder)
    decisions = RecordedDecisions(tmp_path)
    assert list(decisions.new()) == [], "nothing was recorded yet"
    shown = []
    with caplog.at_level(logging.DEBUG, "barograph.control.decision_log"):
        for _ in range(8):
            loop.turn()
            (decision,) = decisions.new()
            shown.append(decision)
    assert [(d.number, d.wall_ms, d.policy, d.mode) for d in shown] == [
        (n, 7000, "adaptive", "act") for n in range(1, 9)
    ]
    logged = [(r.levelno == logging.INFO, r.getMessage()) for r in caplog.records]
    assert [(d.notable, d.line.text()) for d in shown if d.line is not None] == logged
    assert any(d.notable for d in shown) and "; applied" in logged[0][1]
    recorder.close()
    Recorder(tmp_path, "adaptive", "act", clock=lambda: 12.0).close()
    (gap,) = decisions.new()
    assert (gap.line, gap.gap, gap.notable) == (None, "the controller was down for 5.0 s", True)
