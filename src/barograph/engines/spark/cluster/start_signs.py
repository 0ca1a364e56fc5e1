"""Waits for the line in a daemon's log that says that it is up."""

import re
import subprocess
import time
from pathlib import Path

START_TIMEOUT_S = 120.0
MASTER_UP = re.compile(rb"Starting Spark master at (spark://\S+)")
WEB_UP = re.compile(rb"Successfully started service 'MasterUI' on port (\d+)")
WORKER_UP = re.compile(rb"Successfully registered with master (\S+)")
_POLL_S = 0.02
_TAIL_LINES = 15


class StartFailed(RuntimeError):  # noqa: N818  # named like what happened
    """A process of the cluster did not start. The text ends with the last lines of its log."""


def await_sign(
    name: str, child: subprocess.Popen[bytes], log: Path, offset: int, sign: re.Pattern[bytes], deadline: float
) -> str:
    """Wait for the sign in the log after ``offset``. Returns the first group of the pattern."""
    while True:
        ended = child.poll() is not None  # checked before the log is read, so that its last lines are not missed
        with log.open("rb") as file:
            file.seek(offset)
            found = sign.search(file.read())
        if found:
            return found[1].decode().rstrip(".")
        if ended:
            raise StartFailed(f"{name} ended with code {child.returncode} while starting:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise StartFailed(f"{name} was not up after {START_TIMEOUT_S:g} s:\n{tail(log)}")
        time.sleep(_POLL_S)


def log_size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def tail(log: Path) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
    except OSError:
        return "(no log)"
