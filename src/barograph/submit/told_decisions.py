"""Tells a program's user each decision of the controllers that the program started, as it is made.

It reads what they record, from a thread of its own, and changes nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from barograph.control.recorded_decisions import RecordedDecisions
from barograph.history.places import HistoryPath
from barograph.logs import OnceOnly
from barograph.model import BadInput

_warnings = OnceOnly(logging.getLogger(__name__))

LOOK_S = 1.0


class ToldDecisions:
    """histories: the folders of the controllers of this process, as they are now, each with the last number that was
    recorded in it before. What has no greater number is of an earlier controller and is not told. The wall clock would
    not say so: it may be set."""

    def __init__(self, histories: Callable[[], Mapping[HistoryPath, int]], say: Callable[[str], None]) -> None:
        self._histories, self._say = histories, say
        self._read: dict[HistoryPath, tuple[RecordedDecisions, int]] = {}
        self._begun = threading.Lock()

    def begin(self) -> None:
        """From the first call on, until the process ends."""
        if self._begun.acquire(blocking=False):
            threading.Thread(target=self._go_on, name="told-decisions", daemon=True).start()

    def look(self) -> None:
        """Tell what is new."""
        for folder, recorded_before in self._histories().items():
            decisions, before = self._read.setdefault(folder, (RecordedDecisions(folder), recorded_before))
            for decision in decisions.new():
                if decision.notable and decision.line is not None and decision.number > before:
                    self._say(f"{decision.policy}: {decision.line.text()}")

    def _go_on(self) -> None:
        while True:
            try:
                self.look()
                _warnings.over("decisions")
            except (OSError, BadInput) as error:  # no history any more, or a store does not answer
                _warnings.warn("decisions", f"decisions cannot be read: {error}; they are read again")
            time.sleep(LOOK_S)
