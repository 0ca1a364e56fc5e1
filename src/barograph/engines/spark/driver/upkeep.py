"""Calls upkeep at regular intervals, so that looking need not do it: observers change nothing.

What upkeep does is the engine's (``SparkEngine.keep_up``), or that of what it is given. Each wake-up of a thread and
each call into the driver's JVM costs CPU, so that a thread, and a look at the executors, serves as many as it can.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Protocol

from barograph.engines.spark.bridge.reports import LastReport
from barograph.logs import OnceOnly

log = logging.getLogger(__name__)

EVERY_S = 1.0


class KeptUp(Protocol):
    def keep_up(self) -> None: ...

    def lives(self) -> bool: ...


class RegularUpkeep:
    """A thread of the supervisor. It ends with ``close``, or with the Spark application. kept: what each does."""

    def __init__(self, kept: Mapping[str, KeptUp], every_s: float = EVERY_S) -> None:
        self._kept, self._every_s = dict(kept), every_s
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
            for what, kept in self._kept.items():
                try:
                    kept.keep_up()
                    self._warnings.over(what)
                except Exception as error:  # noqa: BLE001  # PySpark makes types of its own of Java's errors
                    if not kept.lives():
                        log.info("%s ends with the application: %s: %s", what, type(error).__name__, error)
                        return
                    self._warnings.warn(what, f"{what} failed: {type(error).__name__}: {error}; it is tried again")


class ReportedExecutors(Protocol):
    """What ``ExecutorWatch`` needs of an engine."""

    def lives(self) -> bool: ...

    def last_reports(self) -> dict[str, LastReport]: ...


class JudgesExecutors(Protocol):
    def judge(self, reports: Mapping[str, LastReport]) -> None: ...


class ExecutorWatch:
    """Asks what executors last reported, once for all that judge them by it."""

    def __init__(self, engine: ReportedExecutors, *judges: JudgesExecutors) -> None:
        self._engine, self._judges = engine, judges

    def lives(self) -> bool:
        return self._engine.lives()

    def keep_up(self) -> None:
        """Each judges, also if another fails; the first error is raised afterwards."""
        reports = self._engine.last_reports()
        failed: Exception | None = None
        for judge in self._judges:
            try:
                judge.judge(reports)
            except Exception as error:  # noqa: BLE001  # it is raised below
                failed = failed or error
        if failed is not None:
            raise failed
