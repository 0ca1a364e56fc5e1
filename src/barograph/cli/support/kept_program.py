"""Runs a program and starts it again whenever it dies. It knows nothing of what the program does.

The program is the leader of a process group. What is left of the group when the leader has died is killed, so that the
next start finds no rival: a killed driver may leave a JVM or a controller behind for a moment.
"""

import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from barograph.config import default
from barograph.engines.spark.backoff import doubled_s
from barograph.model import BadInput

log = logging.getLogger("barograph.keep")

_PASSED_ON = (signal.SIGTERM, signal.SIGINT)
_GROUP_END_S = 10.0
_SETTLE_S = 0.05  # between two looks for what is left of a group


@dataclass(frozen=True, slots=True)
class KeepOptions:
    """As the options keep.*; most_restarts: None for no limit."""

    first_wait_s: float = default("keep.first-wait")
    longest_wait_s: float = default("keep.longest-wait")
    well_after_s: float = default("keep.well-after")
    most_restarts: int | None = default("keep.most-restarts")
    within_s: float = default("keep.within")
    end_within_s: float = default("keep.end-within")


class KeptProgram:
    """Use it in the main thread: it takes over SIGTERM and SIGINT."""

    def __init__(self, command: Sequence[str], options: KeepOptions) -> None:
        self._command, self._options = list(command), options
        self._pid = 0  # of the program; 0 while none runs
        self._ending: int | None = None  # the signal that was passed on
        self._woken = threading.Event()
        self._restarts: deque[float] = deque()

    def run(self) -> int:
        """Returns the exit code of the last program; 128 and the signal if a signal ended it."""
        before = {number: signal.signal(number, self._pass_on) for number in _PASSED_ON}
        try:
            return self._keep()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep(self) -> int:
        deaths = 0
        while True:
            began_s = time.monotonic()
            code = self._run_once()
            if code == 0 or self._ending is not None:
                return code
            lasted_s = time.monotonic() - began_s
            deaths = 1 if lasted_s >= self._options.well_after_s else deaths + 1
            if self._is_too_much(time.monotonic()):
                log.error("%s: given up after %d restarts", _ended(code, lasted_s), len(self._restarts))
                return code
            wait_s = doubled_s(self._options.first_wait_s, deaths - 1, self._options.longest_wait_s)
            log.warning("%s: it is started again in %g s", _ended(code, lasted_s), wait_s)
            if self._woken.wait(wait_s):
                return code
            self._restarts.append(time.monotonic())

    def _is_too_much(self, now_s: float) -> bool:
        while self._restarts and now_s - self._restarts[0] > self._options.within_s:
            self._restarts.popleft()
        return self._options.most_restarts is not None and len(self._restarts) >= self._options.most_restarts

    def _run_once(self) -> int:
        if self._ending is not None:  # the signal came between two programs
            return 128 + self._ending
        try:
            program = subprocess.Popen(self._command, process_group=0)
        except OSError as error:
            if self._restarts:  # it was there before: a file system may be away for a moment
                log.warning("%s cannot be started: %s", self._command[0], error.strerror)
                return 127
            raise BadInput(f"{self._command[0]} cannot be started: {error.strerror}") from error
        self._pid = program.pid
        log.info("started %s as process %d", self._command[0], program.pid)
        if self._ending is not None:
            self._signal(self._ending)
        try:
            # Not reaped yet: until then no other process can get the group's number.
            os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
            _kill_group(program.pid)
        finally:
            self._pid = 0
            code = program.wait()
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        first, self._ending = self._ending is None, number
        self._woken.set()
        self._signal(number)
        if first:
            timer = threading.Timer(self._options.end_within_s, self._signal, (signal.SIGKILL,))
            timer.daemon = True
            timer.start()

    def _signal(self, number: int) -> None:
        """A terminal gives SIGINT to the whole group. SIGTERM goes to the program alone, which ends its own processes
        in order."""
        pid = self._pid
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number) if number == signal.SIGTERM else os.killpg(pid, number)
                os.kill(pid, signal.SIGCONT)  # a stopped process would not hear it


def _kill_group(group: int) -> None:
    """The leader is dead and not reaped; whatever else is in its group ends."""
    others = [pid for pid in _members(group) if pid != group]
    if others:
        log.warning("killed what the program left behind: %s", ", ".join(f"process {pid}" for pid in others))
    deadline = time.monotonic() + _GROUP_END_S
    while any(pid != group for pid in _members(group)) and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        time.sleep(_SETTLE_S)


def _members(group: int) -> list[int]:
    """Live processes of a group; zombies are gone."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[2]) == group and fields[0] not in "ZX":
                    found.append(int(entry.name))
    return found


def _ended(code: int, lasted_s: float) -> str:
    how = f"by {signal.Signals(code - 128).name}" if code - 128 in set(signal.Signals) else f"with code {code}"
    return f"the program ended {how} after {lasted_s:.1f} s"
