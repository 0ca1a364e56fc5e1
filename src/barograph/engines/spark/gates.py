"""Whose sources read nothing now: those that are paused while their priority changes, and those that no node is given.

The two have different owners, and neither may open what the other holds shut. What a topology's pausing is for, and
who gets a node, is decided elsewhere.
"""

import threading
from collections.abc import Callable, Iterable


class Gates:
    """Sends the plug-in everybody who is to rest, whenever that changes."""

    def __init__(self, send: Callable[[Iterable[str]], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._paused: frozenset[str] = frozenset()
        self._resting: frozenset[str] = frozenset()

    @property
    def paused(self) -> frozenset[str]:
        return self._paused

    @property
    def resting(self) -> frozenset[str]:
        """By the last plan that said who rests."""
        return self._resting

    def pause(self, topology: str, on: bool = True) -> None:
        with self._lock:
            others = self._paused - {topology}
            self._set(others | {topology} if on else others, self._resting)

    def rest(self, topologies: Iterable[str]) -> list[str]:
        """From now on these rest by plan, and nobody else; what changed, in words."""
        with self._lock:
            wanted = frozenset(topologies)
            begun, ended = sorted(wanted - self._resting), sorted(self._resting - wanted)
            self._set(self._paused, wanted)
        return [f"the sources of {t} rest" for t in begun] + [f"the sources of {t} read again" for t in ended]

    def _set(self, paused: frozenset[str], resting: frozenset[str]) -> None:
        before = self._paused | self._resting
        if paused | resting != before:
            # Sent before it is noted: what could not be sent is asked for again.
            self._send(sorted(paused | resting))
        self._paused, self._resting = paused, resting
