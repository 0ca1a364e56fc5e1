"""The length of each topology's epochs, if a controller asks for another length than the query's trigger has.

A new length applies to the present epoch too: its readers end it once it has lasted that long. Which length is right
is decided elsewhere.
"""

import threading
from collections.abc import Callable, Mapping

from barograph.model.checks import require

LEAST_S, MOST_S = 1.0, 86_400.0


class EpochPace:
    """Sends requested lengths to the plug-in. While held (the driver is frozen) they are noted and not sent."""

    def __init__(self, send: Callable[[Mapping[str, int]], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._wanted_s: dict[str, float] = {}
        self._sent_ms: dict[str, int] = {}
        self._held = False

    @property
    def wanted_s(self) -> Mapping[str, float]:
        """Topology -> seconds; a topology that is missing has its trigger's length."""
        return dict(self._wanted_s)

    def want(self, lengths_s: object) -> None:
        """Set lengths by topology; others keep theirs. Raises BadInput, and changes nothing, if one is not allowed."""
        require(isinstance(lengths_s, Mapping), "pace: the request must be an object of seconds by topology")
        assert isinstance(lengths_s, Mapping)
        for name, length_s in lengths_s.items():
            number = isinstance(length_s, int | float) and not isinstance(length_s, bool)
            require(
                number and LEAST_S <= length_s <= MOST_S,
                f"pace: an epoch of {name} must last {LEAST_S:g} to {MOST_S:g} seconds, not {length_s!r}",
            )
        with self._lock:
            self._wanted_s.update({str(name): float(length_s) for name, length_s in lengths_s.items()})
            self._send_changes()

    def hold(self, on: bool) -> None:
        with self._lock:
            self._held = on
            self._send_changes()

    def _send_changes(self) -> None:
        wanted_ms = {name: round(length_s * 1000) for name, length_s in self._wanted_s.items()}
        if not self._held and wanted_ms != self._sent_ms:
            self._send(wanted_ms)
            self._sent_ms = wanted_ms
