"""The user of a submitted script reads each decision that is worth a line, once."""

import time
from pathlib import Path

import pytest
from tests.control.test_loop import Timed, settings
from tests.polling import until

from barograph.control.loop import Loop
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.history import Recorder
from barograph.history.places import HistoryPath
from barograph.history.read import last_number
from barograph.submit.told_decisions import ToldDecisions


def recorded(folder: Path, wall_s: float) -> list[str]:
    """Eight cycles of a controller. Returns those that its log has."""
    before = last_number(folder)
    recorder = Recorder(folder, "adaptive", "act", clock=lambda: wall_s)
    loop = Loop(Timed(), settings(), recorder)
    for _ in range(8):
        loop.turn()
    recorder.close()
    found = [d for d in RecordedDecisions(folder).new() if d.notable and d.line and d.number > before]
    return [f"{d.policy}: {d.line.text()}" for d in found if d.line]


@pytest.mark.parametrize("set_s", [-3600.0, 3600.0], ids=["set back", "set forward"])
def test_what_is_worth_a_line_is_told_once_whatever_the_clock(set_s: float, tmp_path: Path) -> None:
    folders: dict[HistoryPath, int] = {}
    told: list[str] = []
    decisions = ToldDecisions(lambda: folders, told.append)
    decisions.look()
    one, two = tmp_path / "one", tmp_path / "two"
    folders[one] = 0
    expected = recorded(one, time.time() + set_s)
    assert len(expected) > 0
    decisions.look()
    assert told == expected
    decisions.look()
    assert told == expected
    assert recorded(two, time.time())
    folders[two] = last_number(two)
    decisions.look()
    assert told == expected, "what an earlier controller decided is not told"
    of_two = recorded(two, time.time() + set_s)
    assert len(of_two) > 0
    decisions.look()
    assert told == [*expected, *of_two]


def test_it_goes_on_by_itself(tmp_path: Path) -> None:
    told: list[str] = []
    decisions = ToldDecisions(lambda: {tmp_path: 0}, told.append)
    decisions.begin()
    decisions.begin()
    expected = recorded(tmp_path, time.time())
    until(lambda: len(told) >= len(expected))
    assert told == expected
