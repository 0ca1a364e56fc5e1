"""Each writer of a history claims it: a folder has one writer at a time.

On this machine the kernel holds the claim and ends it with the process. An object store has no such thing: there the
claim is a file with the writer's name and the time until which it holds, which each entry renews. Two writers that
claim it at the same moment are noticed when they renew it, and the one that finds the other's name stops writing.
"""

import fcntl
import json
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

from barograph.history.places import HistoryPath, RemoteFailed, RemotePath
from barograph.model import BadInput

log = logging.getLogger(__name__)

NAME = ".writer"
HOLDS_S = 300.0
"""How long a claim in a store outlives a writer that died on another machine."""
_RENEW_S = 20.0


class Claim(Protocol):
    def renew(self) -> None:
        """Before each write. An OSError says that the claim is lost."""
        ...

    def close(self) -> None: ...


def claim(
    folder: HistoryPath, clock: Callable[[], float] = time.time, passed: Callable[[], float] = time.monotonic
) -> Claim:
    """BadInput where another controller has it. passed: says when to renew, also if the clock is set."""
    return _LocalClaim(folder) if isinstance(folder, Path) else _RemoteClaim(folder, clock, passed)


class _LocalClaim:
    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = (folder / NAME).open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise BadInput(f"another controller records into {str(folder)!r}") from None
        os.set_inheritable(self._file.fileno(), False)

    def renew(self) -> None:
        """It holds by itself."""

    def close(self) -> None:
        self._file.close()


class _RemoteClaim:
    def __init__(self, folder: RemotePath, clock: Callable[[], float], passed: Callable[[], float]) -> None:
        self._file, self._clock, self._passed = folder / NAME, clock, passed
        self._me = {"host": socket.gethostname(), "pid": os.getpid(), "began": _began(os.getpid()),
                    "id": uuid.uuid4().hex}  # fmt: skip
        other = self._other()
        if other is not None and not _over(other, clock()):
            raise BadInput(
                f"another controller records into {str(folder)!r}: process {other.get('pid')} on {other.get('host')}; "
                f"if that is gone, the claim ends {HOLDS_S:.0f} s after its last entry"
            )
        self._write()

    def renew(self) -> None:
        if self._passed() < self._renewed_s + _RENEW_S:
            return
        other = self._other()
        if other is not None and not _over(other, self._clock()):
            raise RemoteFailed(f"process {other.get('pid')} on {other.get('host')} records into it now")
        self._write()

    def close(self) -> None:
        try:
            if self._other() is None:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the claim %s could not be removed: %s; it ends by its time", self._file, error)

    def _write(self) -> None:
        self._renewed_s = self._passed()
        self._file.write(json.dumps({**self._me, "until_s": self._clock() + HOLDS_S}).encode())

    def _other(self) -> dict[str, Any] | None:
        """The other writer that has it; None where there is none."""
        try:
            found = json.loads(self._file.read())
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("the claim %s makes no sense: %s; it is written anew", self._file, error)
            return None
        return found if isinstance(found, dict) and found.get("id") != self._me["id"] else None


def _over(other: dict[str, Any], now_s: float) -> bool:
    if other.get("host") == socket.gethostname() and _began(other.get("pid")) != other.get("began"):
        return True  # its process has ended
    until_s = other.get("until_s")
    return not isinstance(until_s, int | float) or until_s < now_s


def _began(pid: object) -> str:
    """When a process of this machine began, in clock ticks; empty if there is none."""
    try:
        return Path(f"/proc/{int(str(pid))}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, ValueError, IndexError):
        return ""
