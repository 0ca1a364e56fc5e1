"""Heartbeats of a controller, and a keeper that restarts a controller which ended or hangs. It does nothing else.

A heartbeat says what the controller is doing and how long that may take; the keeper waits that long. A process that was
stopped (SIGSTOP) sends no heartbeat either, so it is restarted too. Nothing here knows what the controller does.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.cluster.processes import EndWatch, identify
from barograph.logs import OnceOnly

log = logging.getLogger(__name__)

STANDARD_ERROR = 2  # the file descriptor, as a process inherits it
# Whether it hangs is looked at when its heartbeat is overdue, and this often, because a later heartbeat may have less
# patience. Its end is noticed at once.
_LOOK_S, _SHORTEST_LOOK_S = 2.0, 0.05
_FIRST_PATIENCE_S = 60.0  # from its start to its first heartbeat: Python and numpy have to be loaded
_QUICK_DEATH_S = 10.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 15.0
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """at_s: on the machine's monotonic clock, which is the same in every process."""

    pid: int
    at_s: float
    patience_s: float
    doing: str


class HeartbeatFile:
    """The file into which a process writes its heartbeats.

    On a full disk no new file can be written; then the file is overwritten in place, which needs no room.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._warnings = OnceOnly(log)

    def __call__(self, doing: str, patience_s: float) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        fields = {"pid": os.getpid(), "at_s": time.monotonic(), "patience_s": patience_s, "doing": doing}
        text = json.dumps(fields)
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self.path)
            self._warnings.over("heartbeat")
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            self._overwrite(text, error)

    def _overwrite(self, text: str, why: OSError) -> None:
        try:
            with self.path.open("r+b", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                file.write(text.encode().ljust(size))  # JSON may end in spaces
        except OSError:
            self._warnings.warn("heartbeat", f"the heartbeat {self.path} cannot be written: {why}; work goes on")


def last_heartbeat(path: Path, pid: int) -> Heartbeat | None:
    """The last heartbeat of this process; None where it has sent none yet."""
    try:
        found = Heartbeat(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.pid == pid else None


class ControllerKeeper:
    """Starts a controller and restarts it whenever it ends or hangs, until it is closed.

    log: where its output goes, a file or a descriptor; None: nowhere. patience: shortens or lengthens timeouts, for
    tests. said: what happened, newest last.
    """

    def __init__(
        self,
        command: Sequence[str],
        heartbeat: Path,
        log: Path | int | None = None,
        patience: Callable[[float], float] = lambda s: s,
        env: dict[str, str] | None = None,
    ) -> None:
        self._command, self.heartbeat, self._log = list(command), heartbeat, log
        self._patience, self._env = patience, env
        self.said: list[str] = []
        self.starts = 0
        self._closed = threading.Event()
        self._ends = EndWatch()
        self._quick_deaths = 0
        self._warnings = OnceOnly(logging.getLogger(__name__))
        self._last: Heartbeat | None = None
        self._look_s = _SHORTEST_LOOK_S
        self.process = self._start()
        self._thread = threading.Thread(target=self._watch, name="controller-keeper", daemon=True)
        self._thread.start()

    def __enter__(self) -> "ControllerKeeper":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, by SIGTERM and then by SIGKILL, and start no other."""
        self._closed.set()
        self._ends.wake()
        self._thread.join()
        self._ends.close()
        if self.process.poll() is None:
            self.process.terminate()
            # A stopped process handles SIGTERM only after it continues.
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(_END_S)
            except subprocess.TimeoutExpired:
                log.warning("the controller did not end within %g s of SIGTERM; it is killed", _END_S)
                self.process.kill()
                self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        self._started_s = time.monotonic()
        to = subprocess.DEVNULL if self._log is None else self._log
        out: int | IO[bytes] = to if isinstance(to, int) else to.open("ab")
        try:
            return subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self._env, umask=0o077
            )
        finally:
            if not isinstance(out, int):
                out.close()

    def _watch(self) -> None:
        ended = False  # whether its end has been told
        while not self._closed.is_set():
            try:
                if not ended and not (ended := self._has_ended()):
                    continue
                # Back off, so that a controller which fails at once is not restarted all the time.
                quick = time.monotonic() - self._started_s < _QUICK_DEATH_S
                self._quick_deaths = self._quick_deaths + 1 if quick else 0
                wait_s = doubled_s(_FIRST_WAIT_S, self._quick_deaths - 1, _LONGEST_WAIT_S) if quick else 0.0
                if self._closed.wait(wait_s):
                    return
                self.process = self._start()
                ended = False
                self._warnings.over("keeper")
            except Exception as error:  # noqa: BLE001  # the machine may have no process, memory or descriptor left
                what = "cannot be started" if ended else "cannot be watched"
                self._warnings.warn(
                    "keeper", f"the controller {what}: {type(error).__name__}: {error}; it is tried again"
                )
                if not ended:
                    self._closed.wait(_LOOK_S)

    def _has_ended(self) -> bool:
        """Wait until it ends, or it is time to look whether it hangs. One that hangs is ended. Tells its end."""
        there = identify(self.process.pid)
        self._ends.wait([there] if there is not None else [], self._look_s if there is not None else 0.0)
        if self._closed.is_set():
            return False
        code = self.process.poll()
        if code is not None:
            self._tell(f"the controller ended with code {code}")
        elif (why := self._hangs()) is not None:
            self.process.kill()
            self.process.wait()
            self._tell(f"the controller hung ({why}) and was ended")
        else:
            return False
        return True

    def _tell(self, sentence: str) -> None:
        self.said.append(sentence)
        log.warning("%s; it is started again, and topologies go on as they are meanwhile", sentence)

    def _hangs(self) -> str | None:
        now_s = time.monotonic()
        pid = self.process.pid
        # A file that is being overwritten may be unreadable for a moment: the heartbeat before it counts.
        last = self._last = last_heartbeat(self.heartbeat, pid) or (
            self._last if self._last is not None and self._last.pid == pid else None
        )
        if last is None:
            silent_s, patience_s, doing = now_s - self._started_s, _FIRST_PATIENCE_S, "starting"
        else:
            silent_s, patience_s, doing = now_s - last.at_s, last.patience_s, last.doing
        left_s = self._patience(patience_s) - silent_s
        self._look_s = max(_SHORTEST_LOOK_S, min(left_s, _LOOK_S))
        return f"{doing} for {silent_s:.1f} s" if left_s < 0 else None
