"""Pauses: gaps in the output while rows were due."""

import pytest

from barograph.experiments.figures.pauses import Pause, around, longest, pauses
from barograph.model import Load

STEADY = Load.parse("constant 100").schedule(10.0)


def out_at(*seconds: float, rows: int = 1) -> dict[int, int]:
    return {round(1_000_000 / 10 + s * 100): rows for s in seconds}


def found(output: dict[int, int], load: str = "constant 100", close_s: float = 10.0) -> list[Pause]:
    return pauses(output, Load.parse(load).schedule(close_s), 1_000_000, close_s, 1)


def test_a_gap_under_load_is_a_pause() -> None:
    assert longest(found(out_at(0.5, 1.0, 3.5, 4.0))) == pytest.approx(2.5, abs=0.02)


def test_only_pauses_that_touch_the_window_count() -> None:
    listed = found(out_at(0.5, 1.0, 3.5, 4.0, 5.0))
    assert longest(listed, 4.2, 4.8) == pytest.approx(1.0, abs=0.02)
    assert longest(listed, 9.0, 9.5) == 0.0


def test_silence_while_nothing_is_due_is_no_pause() -> None:
    listed = found(out_at(*[t / 10 for t in range(1, 11)], 6.2, rows=11), "steps 0s=100 1s=0 6s=100")
    assert longest(listed) == pytest.approx(0.2, abs=0.05)


def test_waiting_rows_make_silence_a_pause_also_after_the_close() -> None:
    listed = found(out_at(0.5, 1.0, 4.0), "constant 100", close_s=1.0)
    assert longest(listed) == pytest.approx(3.0, abs=0.02)


def test_no_output_at_all() -> None:
    assert longest(found({})) == 0.0


def test_the_pause_of_a_kill_is_that_of_the_restart_it_caused() -> None:
    """Rows of other executors come for 0.3 s after the kill, then the query fails and is down for two seconds."""
    listed = found(out_at(*[t / 10 for t in range(1, 24)], *[t / 10 for t in range(45, 100)]))
    kill, restart = (2.0, 2.02), (2.35, 4.35)
    assert longest(listed, *kill) < 0.2, "in the moment of the kill nothing pauses"
    assert longest(listed, *around(kill, [restart], [2.0, 8.0])) == pytest.approx(2.2, abs=0.02)


def test_a_restart_belongs_to_the_action_before_it() -> None:
    restarts = [(2.35, 4.35), (9.0, 11.0), (70.0, 71.0)]
    begun = [2.0, 2.1, 5.0, 8.0, 12.0]
    assert around((2.0, 2.02), restarts, begun) == (2.0, 4.35)
    assert around((2.1, 2.12), restarts, begun) == (2.1, 4.35), "two kills in one second"
    assert around((5.0, 6.0), restarts, begun) == (5.0, 6.0), "the next failure comes after the next action"
    assert around((8.0, 8.1), restarts, begun) == (8.0, 11.0)
    assert around((12.0, 12.1), restarts, begun) == (12.0, 12.1), "too late to be its own"
