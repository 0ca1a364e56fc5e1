"""A run whose driver may be killed: the driver is a separate process, and a new one continues from the checkpoint.

This process owns the cluster and the journal's folder, kills the driver when an action says so, and starts the next
one. Runs without such an action stay in one process. Nothing of the run itself is decided here.
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

from barograph.config.written.actions import Action, Fault
from barograph.engines.spark.cluster.processes import python_environment
from barograph.experiments.report import ActionReport, RunReport
from barograph.experiments.run import run
from barograph.experiments.run_settings import RunSettings, check
from barograph.experiments.running.in_progress import StartAgain
from barograph.experiments.running.journal import Journal, read
from barograph.experiments.running.live_table import LiveLine, LiveTable
from barograph.experiments.running.plain_spark import run_plain
from barograph.experiments.running.run_cluster import open_run_cluster
from barograph.experiments.running.warm_up import RunFailed
from barograph.logs import set_up
from barograph.model import MigrationMode

_AGAIN = 75  # exit code of a driver that is to be started again
_SETTINGS, _JOURNAL, _REPORT, _FAILURE = "settings", "journal", "report", "failure"


def run_it(settings: RunSettings, show: Callable[[LiveLine], None], say: Callable[[str], None]) -> RunReport:
    """Run in this process, or with a driver process where an action or the migration mode ends the driver."""
    if settings.plain:
        return run_plain(settings, show, say)
    kills = sorted((a for a in settings.actions if a.fault is Fault.KILL_DRIVER), key=lambda a: a.at_s)
    leaves = settings.migration is MigrationMode.RESTART_APP and any(a.fault is None for a in settings.actions)
    if not kills and not leaves:
        return run(settings, show, say)
    check(settings)
    with ExitStack() as ending:
        folder = Path(
            ending.enter_context(tempfile.TemporaryDirectory(prefix="barograph-run-", ignore_cleanup_errors=True))
        )
        cluster = open_run_cluster(settings.cluster, settings.master, ending, say, settings.conf)
        told = replace(
            settings,
            master=cluster.conf["spark.master"],
            checkpoint=settings.checkpoint or folder / "checkpoint",
            journal=folder / _JOURNAL,
        )
        (folder / _SETTINGS).write_bytes(pickle.dumps(told))
        while True:
            driver = _start_driver(folder)
            try:
                if not kills or not _await_second(driver, folder, kills[0].at_s):
                    if driver.wait() == _AGAIN:
                        say("the application has ended; another one continues")
                        continue
                    return _report(folder)
            finally:
                _end(driver)
            _note_kill(folder, kills.pop(0))
            say("the driver is killed; another one continues")


def _start_driver(folder: Path) -> subprocess.Popen[bytes]:
    """In its own session, so that it and its JVM end together. Its stdin is a pipe that closes with this process."""
    return subprocess.Popen(
        [sys.executable, "-m", "barograph.experiments.running.killable_driver", str(folder)],
        env=python_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def _await_second(driver: subprocess.Popen[bytes], folder: Path, at_s: float) -> bool:
    """Wait for that second of the load. False when the driver ended before it."""
    journal = folder / _JOURNAL
    while driver.poll() is None:
        start_ms = read(journal).start_ms if journal.exists() else 0
        if start_ms and time.time() >= start_ms / 1000 + at_s:
            return True
        time.sleep(0.05 if not start_ms else min(1.0, max(0.01, start_ms / 1000 + at_s - time.time())))
    return False


def _end(driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver and its JVM: they are one session and no other process is in it."""
    if driver.poll() is None:
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert driver.stdin is not None
    driver.stdin.close()


def _note_kill(folder: Path, action: Action) -> None:
    journal = Journal(folder / _JOURNAL)
    now_ms = int(time.time() * 1000)
    at_s = (now_ms - journal.earlier.start_ms) / 1000
    did = ("killed the driver and its JVM; another one continues from the checkpoint",)
    journal.killed(now_ms, ActionReport(action.at_s, action.text, True, "", None, None, did), at_s)


def _report(folder: Path) -> RunReport:
    if (folder / _FAILURE).exists():
        raise RunFailed(json.loads((folder / _FAILURE).read_text()))
    if not (folder / _REPORT).exists():
        raise RunFailed("the driver ended without a report")
    found: RunReport = pickle.loads((folder / _REPORT).read_bytes())
    return found


def _drive(folder: Path) -> int:
    """The driver process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    settings: RunSettings = pickle.loads((folder / _SETTINGS).read_bytes())
    table = LiveTable(sys.stderr)
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
    os._exit(1)  # no process is left to take the report


if __name__ == "__main__":
    set_up()
    sys.exit(_drive(Path(sys.argv[1])))
