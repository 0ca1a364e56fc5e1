"""What a driver leaves behind that is killed before an operation on its checkpoint's files, and whether it is exact.

By kills: one driver follows another on the same checkpoint. Each first shows that what the one before left is exact,
then carries out a commit, a rescale and an undo, and is killed (-9) before one of the operations of one of them.

By copies: one driver carries all of it out, and the checkpoint is copied before each operation, which is what a kill
would leave. Then the query goes on from each copy. That takes seconds for each, and a kill a new JVM.

A query that does not go on is a point that is not exact, with the reason, and the points after it are tried all the
same.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from barograph.testing.driver_process import DriverProcess

# What is done while operations are counted. A rescale contains a cut, a repartition and a start.
WORK = ("commit", "rescale", "undo")
COMMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """work, number: before which operation of which work. operation: what was about to be done. died: False if there
    were fewer operations, and the driver came to the end. exact, rows: of what the next driver found and went on from.
    back_s: until its query was up. why: what went wrong; empty if nothing did."""

    work: str
    number: int
    operation: str
    died: bool
    exact: bool
    rows: int
    back_s: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class _After:
    """What was found after a crash point."""

    exact: bool = False
    rows: int = 0
    back_s: float = 0.0
    why: str = ""


def crash_points(folder: Path, wanted: Sequence[tuple[str, int]], work: Sequence[str] = WORK) -> Iterator[CrashPoint]:
    """One for each of these operations of these works, until a checkpoint is left from which no query goes on."""
    folder.mkdir(exist_ok=True)
    checkpoint = folder / "checkpoint"
    driver = _driver(folder, checkpoint, "driver-0")
    try:
        driver.ask("start")
        driver.ask("flow", 20)
        for turn, (name, number) in enumerate(wanted, start=1):
            before = work.index(name)
            for earlier in work[:before]:
                driver.ask(earlier)
            log = folder / f"operations-{turn}"
            driver.ask("arm", number, str(log))
            died = not all(driver.survives(each) for each in work[before:])
            driver.kill()
            driver = _driver(folder, checkpoint, f"driver-{turn}")
            after = _went_on(driver)
            lines = log.read_text().splitlines() if log.exists() else []
            last = lines[-1].replace(str(folder), "") if died and lines else "the end"
            yield CrashPoint(name, number, last, died, after.exact, after.rows, after.back_s, after.why)
            if after.why:
                return
    finally:
        driver.kill()


def copied_points(folder: Path, work: Sequence[str] = WORK) -> Iterator[CrashPoint]:
    """One for every operation, by copies."""
    folder.mkdir(exist_ok=True)
    copies, log = folder / "copies", folder / "operations"
    driver = _driver(folder, folder / "checkpoint", "driver-0")
    try:
        driver.ask("start")
        driver.ask("flow", 20)
        driver.ask("copy_before_each", str(copies), str(log))
        ends = [0, *(_count_after(driver, name) for name in work)]
        driver.ask("disarm")
        lines = log.read_text().splitlines()
        for name, (first, last) in zip(work, pairwise(ends), strict=True):
            for number in range(first + 1, last + 1):
                driver.ask("use", str(copies / str(number)))
                after = _went_on(driver, and_stop=True)
                operation = lines[number - 1].replace(str(folder), "")
                yield CrashPoint(
                    name, number - first, operation, True, after.exact, after.rows, after.back_s, after.why
                )
                if after.why:  # its query may still be there
                    driver.kill()
                    driver = _driver(folder, folder / "checkpoint", f"driver-{number}")
                shutil.rmtree(copies / str(number), ignore_errors=True)  # its lease may be given back meanwhile
    finally:
        driver.kill()


def _count_after(driver: DriverProcess, work: str) -> int:
    driver.ask(work)
    return int(driver.ask("counted"))


def _went_on(driver: DriverProcess, and_stop: bool = False) -> _After:
    began = time.monotonic()
    back_s = 0.0
    try:
        driver.ask("start")
        back_s = time.monotonic() - began
        driver.ask("flow", 20)
        driver.ask("commit")
        verdict = driver.ask("verdict")
        if and_stop:
            driver.ask("stop")
    except RuntimeError as error:
        return _After(back_s=back_s, why=str(error))
    why = "" if verdict["exact"] else str(verdict["said"])
    return _After(bool(verdict["exact"]), int(verdict["rows"]), back_s, why)


def _driver(folder: Path, checkpoint: Path, name: str) -> DriverProcess:
    return DriverProcess(checkpoint, name, folder, hooked=True, commit_s=COMMIT_S).ready()
