"""The crash points bench: a kill that did not happen, and a run that is not exact, are missed bars."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barograph.testing.crash_points import CrashPoint
from bench import crash_points


def points(count: int, died: int, exact: bool = True) -> Iterator[CrashPoint]:
    """As the driver's come: nothing is tried after one that was not killed."""
    for number in range(1, min(count, died + 1) + 1):
        yield CrashPoint(number, f"move {number}", number <= died, exact, 10, 1.0)


@pytest.mark.parametrize(
    ("died", "exact", "missed"),
    [
        (4, True, []),
        (2, True, ["kills that happened"]),
        (0, True, ["kills that happened"]),
        (4, False, ["not exact"]),
    ],
)
def test_bars(
    died: int, exact: bool, missed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(_: Path, numbers: Sequence[int]) -> Iterator[CrashPoint]:
        assert list(numbers) == [1, 3, 5, 7]
        return points(len(numbers), died, exact)

    monkeypatch.setattr(crash_points, "KILLS", "4")
    monkeypatch.setattr(crash_points, "copied_points", lambda _: points(8, 8))
    monkeypatch.setattr(crash_points, "crash_points", killed)
    assert crash_points.main() == (1 if missed else 0)
    found = json.loads(capsys.readouterr().out)
    assert [bar["name"] for bar in found["bars"] if not bar["met"]] == missed
    assert (found["points"], found["kills"], found["kills_wanted"]) == (8, died, 4)
