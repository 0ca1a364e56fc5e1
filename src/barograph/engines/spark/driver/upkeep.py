"""Calls the engine's upkeep at regular intervals, so that looking need not do it: observers change nothing.

What upkeep does is the engine's; see ``SparkEngine.keep_up``.
"""

import logging
import threading
from typing import Protocol

from py4j.protocol import Py4JError

from barograph.logs import OnceOnly

log = logging.getLogger(__name__)

EVERY_S = 1.0


class KeptUp(Protocol):
    def keep_up(self) -> None: ...

    def lives(self) -> bool: ...


class RegularUpkeep:
    """A thread of the supervisor. It ends with ``close``, or with the Spark application. what: it does."""

    def __init__(self, engine: KeptUp, every_s: float = EVERY_S, what: str = "keeping up limits and orders") -> None:
        self._engine, self._every_s, self._what = engine, every_s, what
        self._closed = threading.Event()
        self._warnings = OnceOnly(log)
        self._thread = threading.Thread(target=self._run, name="barograph-upkeep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No upkeep is under way when this returns."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            try:
                self._engine.keep_up()
                self._warnings.over("upkeep")
            except (Py4JError, OSError) as error:
                if not self._engine.lives():
                    return
                self._warnings.warn("upkeep", f"{self._what} failed: {error}; it is tried again")
