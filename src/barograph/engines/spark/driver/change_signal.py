"""A signal to a controller that a change should not wait for its next cycle.

It is a number that rises; the controller finds out elsewhere what has changed."""

import threading
from collections.abc import Mapping

from barograph.model.checks import require, require_number, require_whole

LONGEST_S = 10.0


class ChangeSignal:
    """A counter that can be waited for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def raise_signal(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def after(self, seen: int, seconds: float) -> int:
        """Wait until the number differs from ``seen`` or the time is over; returns the number."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, seconds)
            return self._count

    def verb(self, body: object) -> int:
        """Answers a request of the endpoint."""
        require(isinstance(body, Mapping), "news: the request must be an object")
        assert isinstance(body, Mapping)
        require_whole("news: seen", body.get("seen"), -1)
        seconds = body.get("seconds")
        require_number("news: seconds", seconds)
        return self.after(int(body["seen"]), min(float(body["seconds"]), LONGEST_S))
