"""What a driver leaves behind that is killed before an operation on its checkpoint's files, and whether it is exact.

By kills: one driver follows another on the same checkpoint. Each first shows that what the one before left is exact,
then carries out a commit, a rescale and an undo, and is killed (-9) before one further operation than the one before.

By copies: one driver carries all of it out, and the checkpoint is copied before each operation, which is what a kill
would leave. Then the query goes on from each copy. That takes seconds for each, and a kill a new JVM.
"""

import shutil
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
    folder.mkdir(exist_ok=True)
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


def copied_points(folder: Path, work: Sequence[str] = WORK) -> Iterator[CrashPoint]:
    """One for every operation, by copies."""
    folder.mkdir(exist_ok=True)
    copies, log = folder / "copies", folder / "operations"
    driver = _started(folder, folder / "checkpoint", 0)
    try:
        driver.ask("copy_before_each", str(copies), str(log))
        for name in work:
            driver.ask(name)
        count = driver.ask("disarm")
        lines = log.read_text().splitlines()
        for number in range(1, count + 1):
            driver.ask("use", str(copies / str(number)))
            began = time.monotonic()
            driver.ask("start")
            back_s = time.monotonic() - began
            driver.ask("flow", 20)
            driver.ask("commit")
            verdict = driver.ask("verdict")
            driver.ask("stop")
            operation = lines[number - 1].replace(str(folder), "")
            yield CrashPoint(number, operation, True, bool(verdict["exact"]), int(verdict["rows"]), back_s)
            shutil.rmtree(copies / str(number))
    finally:
        driver.kill()


def _started(folder: Path, checkpoint: Path, number: int) -> DriverProcess:
    driver = DriverProcess(checkpoint, f"driver-{number}", folder, hooked=True, commit_s=COMMIT_S).ready()
    driver.ask("start")
    driver.ask("flow", 20)
    return driver
