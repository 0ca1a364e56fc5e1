"""A run whose driver may be killed: the driver is a process of its own, and another one takes over from the checkpoint.

This process owns the cluster and the journal's folder, kills the driver when an action says so, and starts the next.
Runs without such an action stay in one process. Nothing of the run itself is decided here.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import barograph
from barograph.experiments.actions import Action, Blow
from barograph.experiments.journal import Journal, read
from barograph.experiments.live import LiveLine, Table
from barograph.experiments.place import open_place
from barograph.experiments.plain import run_plain
from barograph.experiments.report import ActionReport, RunReport
from barograph.experiments.run import run
from barograph.experiments.run_settings import RunSettings, check
from barograph.experiments.under_way import StartAgain
from barograph.experiments.warm import RunFailed
from barograph.model import MigrationMode

_AGAIN = 75  # how a driver ends that wants to be started again
_SETTINGS, _JOURNAL, _REPORT, _FAILURE = "settings", "journal", "report", "failure"


def run_it(settings: RunSettings, show: Callable[[LiveLine], None], say: Callable[[str], None]) -> RunReport:
    """The run, in this process if nobody is to kill its driver, else in one of its own."""
    if settings.plain:
        return run_plain(settings, show, say)
    kills = sorted((a for a in settings.actions if a.blow is Blow.KILL_DRIVER), key=lambda a: a.at_s)
    leaves = settings.migration is MigrationMode.RESTART_APP and any(a.blow is None for a in settings.actions)
    if not kills and not leaves:
        return run(settings, show, say)
    check(settings)
    with ExitStack() as ending:
        folder = Path(
            ending.enter_context(tempfile.TemporaryDirectory(prefix="barograph-run-", ignore_cleanup_errors=True))
        )
        place = open_place(settings.cluster, settings.master, ending, say)
        told = replace(
            settings,
            master=place.run.master,
            checkpoint=settings.checkpoint or folder / "checkpoint",
            journal=folder / _JOURNAL,
        )
        (folder / _SETTINGS).write_bytes(pickle.dumps(told))
        while True:
            driver = _start_driver(folder)
            try:
                if not kills or not _await_second(driver, folder, kills[0].at_s):
                    if driver.wait() == _AGAIN:
                        say("the application has ended; another one takes over")
                        continue
                    return _report(folder)
            finally:
                _end(driver)
            _note_kill(folder, kills.pop(0))
            say("the driver is killed; another one takes over")


def _start_driver(folder: Path) -> subprocess.Popen[bytes]:
    """Its own session, so that it and its Java end together; its input is a pipe that closes when this process ends."""
    known = [p for p in [str(Path(barograph.__file__).parents[1]), os.environ.get("PYTHONPATH")] if p]
    return subprocess.Popen(
        [sys.executable, "-m", "barograph.experiments.relay", str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(known)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def _await_second(driver: subprocess.Popen[bytes], folder: Path, at_s: float) -> bool:
    """Whether that second of the load came while the driver ran; False when it ended before."""
    journal = folder / _JOURNAL
    while driver.poll() is None:
        start_ms = read(journal).start_ms if journal.exists() else 0
        if start_ms and time.time() >= start_ms / 1000 + at_s:
            return True
        time.sleep(0.05 if not start_ms else min(1.0, max(0.01, start_ms / 1000 + at_s - time.time())))
    return False


def _end(driver: subprocess.Popen[bytes]) -> None:
    """Without a word, the driver and its Java: they are one session and no other process is in it."""
    if driver.poll() is None:
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert driver.stdin is not None
    driver.stdin.close()


def _note_kill(folder: Path, action: Action) -> None:
    journal = Journal(folder / _JOURNAL)
    now_ms = int(time.time() * 1000)
    at_s = (now_ms - journal.past.start_ms) / 1000
    did = ("killed the driver and its Java; another one takes over from the checkpoint",)
    journal.killed(now_ms, ActionReport(action.at_s, action.text, True, "", None, None, did), at_s)


def _report(folder: Path) -> RunReport:
    if (folder / _FAILURE).exists():
        raise RunFailed(json.loads((folder / _FAILURE).read_text()))
    if not (folder / _REPORT).exists():
        raise RunFailed("the driver ended without a word")
    found: RunReport = pickle.loads((folder / _REPORT).read_bytes())
    return found


def _drive(folder: Path) -> int:
    """The driver's life."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    settings: RunSettings = pickle.loads((folder / _SETTINGS).read_bytes())
    table = Table(sys.stderr)
    try:
        report = run(settings, table.show, table.say)
    except StartAgain:
        return _AGAIN
    except RunFailed as error:
        (folder / _FAILURE).write_text(json.dumps(str(error)))
        return 1
    (folder / _REPORT).write_bytes(pickle.dumps(report))
    return 0


def _end_with_parent() -> None:
    os.read(0, 1)  # not sys.stdin, whose lock would be held while the interpreter ends
    os._exit(1)  # who would take the report is gone


if __name__ == "__main__":
    sys.exit(_drive(Path(sys.argv[1])))
