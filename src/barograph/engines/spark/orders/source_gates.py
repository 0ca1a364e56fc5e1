"""Topologies whose sources read nothing now: paused during a priority change, or resting because they have no node.

Pausing and resting have different owners, and neither may undo the other. When a topology pauses and which topology
gets a node is decided elsewhere.
"""

import threading
from collections.abc import Callable, Iterable


class SourceGates:
    """Sends the plug-in the topologies whose sources must not read, whenever that set changes."""

    def __init__(self, send: Callable[[Iterable[str]], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._paused: frozenset[str] = frozenset()
        self._resting: frozenset[str] = frozenset()
        self._sent: frozenset[str] | None = frozenset()  # None: not known, since sending failed

    @property
    def paused(self) -> frozenset[str]:
        return self._paused

    @property
    def resting(self) -> frozenset[str]:
        """By the last plan that said which topologies rest."""
        return self._resting

    def pause(self, topology: str, on: bool = True) -> None:
        with self._lock:
            others = self._paused - {topology}
            self._set(others | {topology} if on else others, self._resting)

    def rest(self, topologies: Iterable[str]) -> list[str]:
        """Exactly these topologies rest by plan from now on. Returns what changed, for people to read."""
        with self._lock:
            wanted = frozenset(topologies)
            begun, ended = sorted(wanted - self._resting), sorted(self._resting - wanted)
            self._set(self._paused, wanted)
        return [f"the sources of {t} rest" for t in begun] + [f"the sources of {t} read again" for t in ended]

    def take_back(self, resting: frozenset[str]) -> None:
        """The plan failed: exactly these rest again, also where that cannot be sent now."""
        with self._lock:
            self._resting = resting
            self._set(self._paused, resting)

    def _set(self, paused: frozenset[str], resting: frozenset[str]) -> None:
        wanted = paused | resting
        if wanted != self._sent:
            # Sent before it is noted: if sending fails, the next call sends again. What failed may have arrived.
            self._sent = None
            self._send(sorted(wanted))
        self._paused, self._resting, self._sent = paused, resting, wanted
