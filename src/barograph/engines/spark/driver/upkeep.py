"""Calls upkeep at regular intervals, so that looking need not do it: observers change nothing.

What upkeep does is said elsewhere; see ``SparkEngine.keep_up`` and ``EpochBounds.keep``.
"""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from py4j.protocol import Py4JError

from barograph.logs import OnceOnly

log = logging.getLogger(__name__)

EVERY_S = 1.0


class KeptUp(Protocol):
    def keep_up(self) -> None: ...

    def lives(self) -> bool: ...


class RegularUpkeep:
    """A thread of the supervisor. It ends with ``close``, or with the Spark application. also: called after the
    engine's own upkeep."""

    def __init__(self, engine: KeptUp, every_s: float = EVERY_S, also: Callable[[], object] = lambda: None) -> None:
        self._engine, self._every_s, self._also = engine, every_s, also
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
                self._also()
                self._warnings.over("upkeep")
            except (Py4JError, OSError) as error:
                if not self._engine.lives():
                    return
                self._warnings.warn(
                    "upkeep", f"limits, orders and epochs could not be kept up: {error}; it is tried again"
                )
