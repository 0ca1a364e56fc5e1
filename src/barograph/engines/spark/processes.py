"""Processes that Barograph started: which they are, whether they live, and how they end.

A process is known by pid and start time, so that a recycled pid is never mistaken for it; its descendants (executors)
by a mark in the environment they inherit. Nothing else is ever signalled. Linux only: all of it is read from /proc.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

RUN_MARK = "BAROGRAPH_RUN"
NODE_MARK = "BAROGRAPH_NODE"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """One life of a pid. start_ticks: when it began, in clock ticks since the machine started."""

    pid: int
    start_ticks: int


def boot_id() -> str:
    """This start of the machine. Start times of another one mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Process | None:
    """The process that has this pid now; None when there is none, or only the zombie of one."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command's name is in parentheses and may hold anything; fields are counted behind its last one.
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else Process(pid, int(fields[19]))


def alive(process: Process) -> bool:
    return identify(process.pid) == process


def marked(run_id: str, node: str | None = None) -> tuple[Process, ...]:
    """Every live process of a run, or of one of its nodes: what was started and all descendants."""
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
    """Signal exactly this process; False when it is gone. The pidfd closes the gap between looking and signalling."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
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
    """Whether the process ended within the time. None waits for as long as it lives."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return True
    try:
        if not alive(process):
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
    finally:
        os.close(handle)


def kill(processes: Iterable[Process], timeout_s: float = 10.0) -> None:
    """SIGKILL them all, then wait until all are gone."""
    killed = [p for p in processes if send(p, signal.SIGKILL)]
    deadline = time.monotonic() + timeout_s
    for process in killed:
        wait_gone(process, max(0.0, deadline - time.monotonic()))


def kill_marked(run_id: str, node: str | None = None, timeout_s: float = 10.0) -> None:
    """SIGKILL a run, or one of its nodes, again and again until nobody is left who could have started another."""
    deadline = time.monotonic() + timeout_s
    while found := marked(run_id, node):
        kill(found, max(0.1, deadline - time.monotonic()))
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {[p.pid for p in found]} do not end")


def _environment(pid: int) -> frozenset[bytes]:
    with contextlib.suppress(OSError):  # ended meanwhile, or another user's
        return frozenset((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    return frozenset()
