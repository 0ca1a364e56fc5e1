"""A sign of life, and who acts on its absence: a controller that dies or hangs is started again, nothing else happens.

The one who works says what it is doing and how long that may take; the keeper waits so long and no longer. A process
that was stopped (SIGSTOP) says nothing either. Nothing here knows what the process does.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_LOOK_S = 0.1
_FIRST_PATIENCE_S = 60.0  # from its start to its first beat: Python and numpy have to be loaded
_QUICK_DEATH_S = 10.0
_LONGEST_WAIT_S = 15.0
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Sign:
    """at_s: on the machine's monotonic clock, which is the same in every process."""

    pid: int
    at_s: float
    patience_s: float
    doing: str


class Beat:
    """The file in which a process says that it lives."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, doing: str, patience_s: float) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        sign = {"pid": os.getpid(), "at_s": time.monotonic(), "patience_s": patience_s, "doing": doing}
        temporary.write_text(json.dumps(sign), encoding="utf-8")
        temporary.replace(self.path)


def last_sign(path: Path, pid: int) -> Sign | None:
    """What this process last said; None where it has said nothing yet."""
    try:
        found = Sign(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.pid == pid else None


class Keeper:
    """Starts a process and starts it again whenever it dies or hangs, until it is closed.

    log: where its output goes. patience: makes patience shorter or longer, for tests. said: what happened, newest last.
    """

    def __init__(
        self,
        order: Sequence[str],
        beat: Path,
        log: Path | None = None,
        patience: Callable[[float], float] = lambda s: s,
        env: dict[str, str] | None = None,
    ) -> None:
        self._order, self.beat, self._log, self._patience, self._env = list(order), beat, log, patience, env
        self.said: list[str] = []
        self.starts = 0
        self._closed = threading.Event()
        self._wait_s = 0.0
        self.process = self._start()
        self._thread = threading.Thread(target=self._watch, name="controller-keeper", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Keeper":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Start nothing more, and end the process: kindly, then by force."""
        self._closed.set()
        self._thread.join()
        if self.process.poll() is None:
            self.process.terminate()
            # One that was stopped hears nothing until it goes on.
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        self._started_s = time.monotonic()
        out: int | IO[bytes] = subprocess.DEVNULL if self._log is None else self._log.open("ab")
        try:
            return subprocess.Popen(self._order, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self._env)
        finally:
            if not isinstance(out, int):
                out.close()

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_S):
            code = self.process.poll()
            if code is None:
                if (why := self._hangs()) is None:
                    continue
                self.process.kill()
                self.process.wait()
                self.said.append(f"the controller hung ({why}) and was ended")
            else:
                self.said.append(f"the controller ended with code {code}")
            # One that dies at once is not started a hundred times a second.
            quick = time.monotonic() - self._started_s < _QUICK_DEATH_S
            self._wait_s = min(_LONGEST_WAIT_S, 2 * self._wait_s or 0.25) if quick else 0.0
            if self._closed.wait(self._wait_s):
                return
            self.process = self._start()

    def _hangs(self) -> str | None:
        now_s = time.monotonic()
        sign = last_sign(self.beat, self.process.pid)
        if sign is None:
            silent_s, patience_s, doing = now_s - self._started_s, _FIRST_PATIENCE_S, "starting"
        else:
            silent_s, patience_s, doing = now_s - sign.at_s, sign.patience_s, sign.doing
        return f"{doing} for {silent_s:.1f} s" if silent_s > self._patience(patience_s) else None
