"""Restarts that a plan asks for, on the side that asks: it stops the query between two epochs and waits.

The thread that supervises the query does what is requested, once it finds the query stopped.
"""

import logging
import threading
import time
from typing import Any, Protocol

from barograph.engines.spark.bridge.query_run import EndKind, QueryRunEnd
from barograph.engines.spark.orders.planned_restarts import Between
from barograph.engines.spark.query.checkpoint import checkpoint_of
from barograph.engines.spark.query.repartition import RestartRequest
from barograph.engines.spark.tolerated import tolerated

log = logging.getLogger(__name__)

REQUEST_S = 120.0  # how long a request waits for a query that dies meanwhile
_LOOK_S = 0.05
# Spark stops a run for another start of its query, and lists the new run at once, unless garbage is collected between.
_SUCCESSOR_S = 0.5


class HoldsQueries(Protocol):
    """What an engine offers for it."""

    def hold(self, topology: str) -> bool: ...

    def release_hold(self, topology: str) -> None: ...

    def await_end(self, query: Any, timeout_s: float) -> QueryRunEnd | None: ...

    def successor(self, query: Any, timeout_s: float) -> str: ...


class StoppableRuns(Protocol):
    """What is needed of ``QueryRuns``."""

    topology: str
    run_id: str
    doing: str
    query: Any
    lock: threading.RLock
    up: threading.Event
    ended: threading.Event
    stopping: threading.Event


class RequestedRestarts:
    """Of one query. present: the one that waits now."""

    def __init__(self, engine: HoldsQueries, runs: StoppableRuns) -> None:
        self._engine, self._runs = engine, runs
        self._one_at_a_time = threading.Lock()
        self.present: RestartRequest | None = None
        self._failed_stop: tuple[str, str] = ("", "")  # the run whose stop failed, and why

    def judged(self, end: QueryRunEnd, run: str) -> QueryRunEnd:
        """How a run has really ended: one whose stop failed for a request may stop later all the same, and its query
        must go on. One that neither a request nor the query's handle has stopped ends the query: in order, if the
        program stopped it by spark.streams; as taken over, if Spark did for another start on its checkpoint."""
        if end.died:
            return end
        if run == self._failed_stop[0]:
            return QueryRunEnd(EndKind.DIED, f"it was stopped for a restart, and that failed: {self._failed_stop[1]}")
        if not self._runs.stopping.is_set():
            if taken := self._taken_over():
                return QueryRunEnd(EndKind.DIED, taken)
            log.warning(
                "%s was stopped past its handle, as by spark.streams: it is not started again", self._runs.topology
            )
        return end

    def _taken_over(self) -> str:
        query = self._runs.query
        with tolerated(log, f"whether {self._runs.topology} was started elsewhere is not known", Exception):
            if run := self._engine.successor(query, _SUCCESSOR_S):
                return (
                    f"the checkpoint {checkpoint_of(query)} was taken over by another start in this driver, its run "
                    f"{run}: a query that is kept must not be started by a plain start() too"
                )
        return ""

    def ask(self, count: int | None, between: Between | None) -> str:
        """See ``Restartable.repartition``. A query that dies before it is stopped is waited for, and stopped then."""
        deadline, runs = time.monotonic() + REQUEST_S, self._runs
        with self._one_at_a_time:
            while True:
                while not runs.up.wait(_LOOK_S):
                    if runs.ended.is_set() or time.monotonic() > deadline:
                        return f"it is not running now: {runs.doing}"
                request, before = RestartRequest(count, between), runs.run_id
                problem = self._asked(request, before)
                died = request.died or (not request.done.is_set() and self._has_ended(before))
                if not died or runs.stopping.is_set() or time.monotonic() > deadline:
                    return problem
                while runs.up.is_set() and runs.run_id == before and not runs.ended.wait(_LOOK_S):
                    pass  # until its death is noticed

    def _asked(self, request: RestartRequest, before: str) -> str:
        runs, self.present = self._runs, request
        try:
            if not self._engine.hold(runs.topology):
                return "its epoch did not end in time"
            try:
                with runs.lock:
                    if runs.stopping.is_set() or runs.run_id != before:
                        return f"it ended meanwhile: {runs.doing}"
                    runs.query.stop()
                request.done.wait()
                return request.problem
            except BaseException as error:  # also an interrupt of the program, which may go on all the same
                self._failed_stop = (before, f"{type(error).__name__}: {error}")
                raise
            finally:
                if not request.done.is_set():  # it was not stopped, and would stand still until the hold is over
                    self._engine.release_hold(runs.topology)
        finally:
            self.present = None

    def _has_ended(self, run: str) -> bool:
        return self._runs.run_id != run or self._engine.await_end(self._runs.query, 0.0) is not None
