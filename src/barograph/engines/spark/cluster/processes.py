"""Processes that Barograph started: identify them, check whether they are alive, end them.

A process is identified by pid and start time, so that a recycled pid is never mistaken for it; its descendants
(executors) by a mark in the environment they inherit. No other process is ever signalled. Linux only: it reads /proc.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import barograph

RUN_MARK = "BAROGRAPH_RUN"
NODE_MARK = "BAROGRAPH_NODE"
_PROC = Path("/proc")
# Of this process, which has no descriptor or memory left to look with: it says nothing about another one.
_CANNOT_LOOK = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """One process. start_ticks: when it began, in clock ticks since the machine started."""

    pid: int
    start_ticks: int


def python_environment() -> dict[str, str]:
    """The environment for another Python process of ours, so that it imports this same package."""
    source = str(Path(barograph.__file__).parents[1])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, *([known] if known else [])])}


def boot_id() -> str:
    """Identifies this start of the machine; start times of processes are comparable only within it."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Process | None:
    """The process that has this pid now; None if there is none, or only a zombie. OSError if it cannot be looked."""
    return _state_of(pid)[1]


def alive(process: Process) -> bool:
    return identify(process.pid) == process


def is_stopped(process: Process) -> bool:
    """Whether it is alive, but does nothing until it is told to go on: by SIGSTOP, or by a debugger."""
    state, found = _state_of(process.pid)
    return found == process and state in "Tt"


def _state_of(pid: int) -> tuple[str, Process | None]:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError as error:
        if error.errno in _CANNOT_LOOK:
            raise
        return "", None
    # The command's name is in parentheses and may contain anything; fields are counted after the last parenthesis.
    fields = stat[stat.rindex(")") + 2 :].split()
    return fields[0], None if fields[0] in "ZX" else Process(pid, int(fields[19]))


def marked(run_id: str, node: str | None = None) -> tuple[Process, ...]:
    """Every live process of a run, or of one of its nodes: those that were started and all descendants."""
    wanted = {f"{RUN_MARK}={run_id}".encode()}
    if node is not None:
        wanted.add(f"{NODE_MARK}={node}".encode())
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            process = identify(int(entry.name))
            if process is not None and wanted <= _environment(process.pid):
                found.append(process)
    return tuple(sorted(found))


def send(process: Process, number: signal.Signals) -> bool:
    """Signal exactly this process; False if it is gone. The pidfd closes the gap between check and signal."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno in _CANNOT_LOOK:
            raise
        return False
    try:
        if not alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def wait_gone(process: Process, timeout_s: float | None) -> bool:
    """Whether the process ended within the timeout; None waits without a timeout. While it cannot be looked, it is
    tried again: what follows an end, such as clearing a cluster, must not follow a want of descriptors."""
    deadline_s = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
    while True:
        try:
            return _wait_gone(process, None if timeout_s is None else max(0.0, deadline_s - time.monotonic()))
        except OSError as error:
            if error.errno not in _CANNOT_LOOK:
                return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_AGAIN_S)


def _wait_gone(process: Process, timeout_s: float | None) -> bool:
    handle = os.pidfd_open(process.pid)
    try:
        if not alive(process):
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
    finally:
        os.close(handle)


class EndWatch:
    """Waits until a process ends, without looking at it again and again, and can be woken from another thread."""

    def __init__(self) -> None:
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def wait(self, processes: Iterable[Process], timeout_s: float) -> None:
        """Until one of them has ended, the timeout is over, or ``wake`` was called, also before this."""
        handles: list[int] = []
        try:
            poll = select.poll()
            poll.register(self._wake, select.POLLIN)
            for process in processes:
                try:
                    handles.append(os.pidfd_open(process.pid))
                except ProcessLookupError:
                    return
                poll.register(handles[-1], select.POLLIN)
                if not alive(process):
                    return
            poll.poll(max(0.0, timeout_s) * 1000)
        finally:
            for handle in handles:
                os.close(handle)

    def wake(self) -> None:
        """For good: every later wait returns at once."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """After the last wait; also more than once."""
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1


def kill(processes: Iterable[Process], timeout_s: float = 10.0) -> None:
    """SIGKILL them all, then wait until all are gone."""
    killed = [p for p in processes if send(p, signal.SIGKILL)]
    deadline = time.monotonic() + timeout_s
    for process in killed:
        wait_gone(process, max(0.0, deadline - time.monotonic()))


def kill_marked(run_id: str, node: str | None = None, timeout_s: float = 10.0) -> None:
    """SIGKILL a run, or one of its nodes, repeatedly until no process is left that could have started another."""
    deadline = time.monotonic() + timeout_s
    while found := marked(run_id, node):
        kill(found, max(0.1, deadline - time.monotonic()))
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {[p.pid for p in found]} do not end")


def _environment(pid: int) -> frozenset[bytes]:
    try:
        return frozenset((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError as error:
        if error.errno in _CANNOT_LOOK:
            raise
        return frozenset()  # it has ended, or belongs to another user
