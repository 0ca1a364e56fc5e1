"""Word for a controller that something should not wait for its next cycle. A number that rises; what happened is asked
for elsewhere."""

import threading
from collections.abc import Mapping

from barograph.model.checks import require, require_number, require_whole

LONGEST_S = 10.0


class News:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def tell(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def after(self, seen: int, seconds: float) -> int:
        """The number now, as soon as it is another than ``seen``, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, seconds)
            return self._count

    def verb(self, body: object) -> int:
        require(isinstance(body, Mapping), "news: the request must be an object")
        assert isinstance(body, Mapping)
        require_whole("news: seen", body.get("seen"), -1)
        seconds = body.get("seconds")
        require_number("news: seconds", seconds)
        return self.after(int(body["seen"]), min(float(body["seconds"]), LONGEST_S))
