"""Starts a driver as a process of its own, gives it orders, and ends it."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("counting_driver.py")
ANSWER_S = 600.0
GONE = ",Z"  # the states of a process that has ended
DYING_S = 5.0


class DriverProcess:
    """With a supervised word count on the checkpoint, once it is ordered to start. commit_s: how long a cut waits for
    its commit."""

    def __init__(
        self,
        checkpoint: Path,
        name: str,
        logs: Path,
        patience_s: float = 10.0,
        hooked: bool = False,
        commit_s: float = 15.0,
    ) -> None:
        self.log = logs / f"{name}.log"
        given = {
            "checkpoint": str(checkpoint), "name": name, "log": str(self.log), "patience_s": patience_s,
            "hooked": hooked, "commit_s": commit_s,
        }  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(given)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True, bufsize=1,
            )  # fmt: skip
        self._read: list[str] = []
        self.jvm: int | None = None

    def ready(self) -> "DriverProcess":
        self.jvm = int(self._line(ANSWER_S)["jvm"])
        return self

    def send(self, name: str, *arguments: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()

    def answer(self, timeout_s: float = ANSWER_S) -> Any:
        """Of the last order. Raises what the driver says went wrong."""
        found = self._line(timeout_s)
        if "error" in found:
            raise RuntimeError(found["error"])
        return found["answer"]

    def ask(self, name: str, *arguments: object) -> Any:
        self.send(name, *arguments)
        return self.answer()

    def survives(self, name: str, *arguments: object, timeout_s: float = ANSWER_S) -> bool:
        """Whether the driver's JVM lives until it has carried the order out."""
        self.send(name, *arguments)
        deadline = time.monotonic() + timeout_s
        while self.jvm_state() not in GONE.split(","):
            if select.select([self._process.stdout], [], [], 0.02)[0]:
                return self._carried_out()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} took longer than {timeout_s:g} s")
        return False

    def _carried_out(self) -> bool:
        """The driver's Python may tell of its dead JVM as an error before the kernel shows that it is gone."""
        try:
            self.answer()
        except RuntimeError:
            with suppress(TimeoutError):
                self.await_jvm(GONE, DYING_S)
                return False
            raise
        return True

    def jvm_state(self) -> str:
        """A letter, as the kernel has it; empty if it is gone."""
        try:
            return Path(f"/proc/{self.jvm}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return ""

    def await_jvm(self, states: str, timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while (state := self.jvm_state()) not in states.split(","):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the driver's JVM is {state!r}, not one of {states!r}")
            time.sleep(0.02)

    def wake(self) -> None:
        assert self.jvm is not None
        os.kill(self.jvm, signal.SIGCONT)

    def kill(self) -> None:
        """At once, with its JVM."""
        for pid in (self.jvm, self._process.pid):
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait(30)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # an order that was not read
                    stream.close()

    def _line(self, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        found, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        line = self._process.stdout.readline() if found else ""
        if not line:
            end = self.log.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"the driver did not answer within {timeout_s:g} s, or has died: {end}")
        answer: dict[str, Any] = json.loads(line)
        return answer
