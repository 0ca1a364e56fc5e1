"""The crash points bench: a kill that did not happen, a work without points, an error and a run that is not exact are
missed bars, and what was found is reported."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barograph.testing.crash_points import CrashPoint
from bench import crash_points

WORKS = ("commit",) * 4 + ("rescale",) * 8 + ("undo",) * 3


def copied(works: Sequence[str] = WORKS, breaks: bool = False) -> Iterator[CrashPoint]:
    for k, work in enumerate(works):
        number = k + 1 - works.index(work)
        yield CrashPoint(work, number, f"move {number}", True, True, 10, 1.0)
    if breaks:
        raise RuntimeError("the driver has died")


@pytest.mark.parametrize(
    ("died", "exact", "works", "breaks", "missed"),
    [
        (5, True, WORKS, False, []),
        (2, True, WORKS, False, ["kills that happened"]),
        (0, True, WORKS, False, ["kills that happened"]),
        (5, False, WORKS, False, ["not exact"]),
        (4, True, WORKS[:-3], False, ["points of undo"]),
        (5, True, WORKS, True, ["problems"]),
    ],
)
def test_bars(
    died: int,
    exact: bool,
    works: Sequence[str],
    breaks: bool,
    missed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def killed(_: Path, wanted: Sequence[tuple[str, int]]) -> Iterator[CrashPoint]:
        for k, (work, number) in enumerate(wanted):
            yield CrashPoint(work, number, "move", k < died, exact, 10, 1.0, "" if exact else "a row is lost")

    monkeypatch.setattr(crash_points, "KILLS", "4")
    monkeypatch.setattr(crash_points, "copied_points", lambda _: copied(works, breaks))
    monkeypatch.setattr(crash_points, "crash_points", killed)
    assert crash_points.main() == (1 if missed else 0)
    found = json.loads(capsys.readouterr().out)
    assert [bar["name"] for bar in found["bars"] if not bar["met"]] == missed
    assert found["points"] == len(works)


def test_each_work_has_a_real_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash_points, "KILLS", "2")
    assert crash_points.chosen(list(copied())) == [("commit", 1), ("rescale", 4), ("undo", 2)]
