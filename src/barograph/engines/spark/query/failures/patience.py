"""Asks the engine again when it fails: an error of one call does not end the supervision of a query."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.query.failures.diagnosis import RestartLimits

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Patience:
    """lives: whether the application lives. stopping: waits so many seconds and returns whether the query is being
    stopped. limits: how long one question is repeated, and the waits between."""

    def __init__(
        self,
        lives: Callable[[], bool],
        stopping: Callable[[float], bool],
        limits: RestartLimits,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lives, self._stopping, self._limits = lives, stopping, limits
        self._now = now

    def ask(self, question: Callable[[], _T]) -> _T:
        """Its answer. Raises its error if the application has ended, the query is being stopped, or time is up."""
        began_s, failures = self._now(), 0
        while True:
            try:
                return question()
            except Exception as error:
                if not self._lives() or self._now() - began_s >= self._limits.keep_trying_s:
                    raise
                if failures == 0:
                    log.warning("the engine failed: %s: %s; it is asked again", type(error).__name__, error)
                if self._stopping(doubled_s(self._limits.first_wait_s, failures, self._limits.longest_wait_s)):
                    raise
                failures += 1
