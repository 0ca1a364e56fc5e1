"""The user of a submitted script reads each decision that is worth a line, once."""

import time
from pathlib import Path

from tests.control.test_loop import Timed, settings
from tests.polling import until

from barograph.control.loop import Loop
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.history import Recorder
from barograph.submit.told_decisions import ToldDecisions


def recorded(folder: Path, wall_s: float) -> list[str]:
    """Eight cycles of a controller. Returns those that its log has."""
    recorder = Recorder(folder, "adaptive", "act", clock=lambda: wall_s)
    loop = Loop(Timed(), settings(), recorder)
    for _ in range(8):
        loop.turn()
    recorder.close()
    found = [d for d in RecordedDecisions(folder).new() if d.notable and d.line and d.wall_ms == round(1000 * wall_s)]
    return [f"{d.policy}: {d.line.text()}" for d in found if d.line]


def test_what_is_worth_a_line_is_told_once(tmp_path: Path) -> None:
    folders: list[Path] = []
    told: list[str] = []
    decisions = ToldDecisions(lambda: folders, told.append)
    decisions.look()
    folders += [tmp_path / "one", tmp_path / "two"]
    expected = recorded(folders[0], time.time() + 60)
    assert len(expected) > 0
    decisions.look()
    assert told == expected
    decisions.look()
    assert told == expected
    assert recorded(folders[1], 7.0)
    decisions.look()
    assert told == expected, "what an earlier program decided is not told"


def test_it_goes_on_by_itself(tmp_path: Path) -> None:
    told: list[str] = []
    decisions = ToldDecisions(lambda: [tmp_path], told.append)
    decisions.begin()
    decisions.begin()
    expected = recorded(tmp_path, time.time() + 60)
    until(lambda: len(told) >= len(expected))
    assert told == expected
