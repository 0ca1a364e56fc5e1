"""Kills a driver before each operation on its checkpoint's files, in turn, and judges what is left.

One driver follows another on the same checkpoint: each first shows that what the one before left is exact, then
carries out a commit, a rescale and an undo, and is killed (-9) before one further operation than the one before it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barograph.testing.driver_process import DriverProcess

# What is done while operations are counted. A rescale contains a cut, a repartition and a start.
WORK = ("commit", "rescale", "undo")
COMMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """operation: what was about to be done, with its number. died: False if there were fewer operations, and the driver
    came to the end. exact, rows: of what the next driver found and went on from. back_s: until its query was up."""

    number: int
    operation: str
    died: bool
    exact: bool
    rows: int
    back_s: float


def crash_points(folder: Path, numbers: Sequence[int], work: Sequence[str] = WORK) -> Iterator[CrashPoint]:
    """One for each number, until a driver comes to its end before it."""
    checkpoint = folder / "checkpoint"
    driver = _started(folder, checkpoint, 0)
    try:
        for number in numbers:
            log = folder / f"operations-{number}"
            driver.ask("arm", number, str(log))
            died = not all(driver.survives(name) for name in work)
            driver.kill()
            began = time.monotonic()
            driver = _started(folder, checkpoint, number)
            back_s = time.monotonic() - began
            driver.ask("commit")
            verdict = driver.ask("verdict")
            lines = log.read_text().splitlines()
            last = lines[-1].replace(str(folder), "") if died and lines else "the end"
            yield CrashPoint(number, last, died, bool(verdict["exact"]), int(verdict["rows"]), back_s)
            if not died:
                return
    finally:
        driver.kill()


def _started(folder: Path, checkpoint: Path, number: int) -> DriverProcess:
    driver = DriverProcess(checkpoint, f"driver-{number}", folder, hooked=True, commit_s=COMMIT_S).ready()
    driver.ask("start")
    driver.ask("flow", 20)
    return driver
