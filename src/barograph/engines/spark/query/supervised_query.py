"""The handle of a supervised query: what its program, and the supervisor of the driver, see of it.

It is used like Spark's StreamingQuery, but stays valid through all runs of the query (``query_runs``): it ends only
when the query is stopped or given up.
"""

import time
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.orders.planned_restarts import Between
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.progress import read_progress
from barograph.engines.spark.query.query_runs import PROGRESS_KEPT, QueryRuns
from barograph.engines.spark.query.replayed import Restart
from barograph.engines.spark.query.start.first_size import PLANNED, SizeChoice
from barograph.engines.spark.query.start.writer_ahead import Build


class Supervised(StreamingQuery):
    """A query that is restarted when it dies. Make one with ``Supervisor.start``.

    It is a StreamingQuery to programs that ask for one; it overrides everything that belongs to a single run.
    """

    def __init__(
        self, engine: SparkEngine, build: Build, checkpoint: str | None, limits: RestartLimits,
        size: SizeChoice = PLANNED,
    ) -> None:  # fmt: skip
        self._runs = QueryRuns(engine, build, checkpoint, limits, size)

    @property
    def _jsq(self) -> Any:
        return self._runs.query._jsq

    # --- the interface of Spark's StreamingQuery ---

    @property
    def id(self) -> str:
        """The same in all runs: it is kept in the checkpoint."""
        return str(self._runs.query.id)

    @property
    def runId(self) -> str:  # noqa: N802  # Spark's name
        """Of the present run, or the last one."""
        return self._runs.run_id

    @property
    def name(self) -> str | None:  # type: ignore[override]  # as Spark has it; its hint is wrong
        return self._runs.query.name

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        """Until it is stopped or given up; also between two runs."""
        return not self._runs.ended.is_set()

    @property
    def status(self) -> dict[str, Any]:
        return dict(self._runs.query.status)

    @property
    def lastProgress(self) -> Any:  # noqa: N802  # Spark's name
        """Of the latest epoch that ended, in any run."""
        runs = self._runs
        with runs.lock:
            return runs.query.lastProgress or (read_progress(runs.progress[-1]) if runs.progress else None)

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # Spark's name
        runs = self._runs
        with runs.lock:
            return [*map(read_progress, runs.progress), *runs.query.recentProgress][-PROGRESS_KEPT:]

    def exception(self) -> Exception | None:  # type: ignore[override]  # also one of ours
        """What ended it for good; None while it runs, is being restarted, or was stopped."""
        return self._runs.error

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # Spark's name
        """Wait until it is stopped (True), the timeout is over (False), or it is given up (raises what ended it)."""
        ended = self._runs.ended.wait(timeout)
        if self._runs.error is not None:
            raise self._runs.error
        return None if timeout is None else ended

    def processAllAvailable(self) -> None:  # noqa: N802  # Spark's name
        self._runs.query.processAllAvailable()

    def explain(self, extended: bool = False) -> None:
        self._runs.query.explain(extended)

    def stop(self) -> None:
        """End it for good. It has ended when this returns."""
        self._runs.stop()

    def await_end(self) -> None:
        """Until it is stopped or given up; unlike ``awaitTermination`` it does not raise what ended it."""
        self._runs.ended.wait()

    # --- for the supervisor ---

    @property
    def topology(self) -> str:
        """The planner's name of it: a query without a name is known by its id."""
        return self._runs.topology

    @property
    def doing(self) -> str:
        """What happens to it now, for people to read."""
        return self._runs.doing

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """Those after deaths, not those that a plan asked for."""
        with self._runs.lock:
            return tuple(self._runs.restarts)

    @property
    def present(self) -> StreamingQuery:
        """The present run, or the last one."""
        return self._runs.query

    @property
    def gave_up_because(self) -> str:
        """Why it is not restarted, for people to read; empty unless it was given up."""
        return "" if self._runs.given_up is None else self._runs.given_up.text

    @property
    def is_bug(self) -> bool:
        """Whether it was given up because of a bug in the query, not because of the cluster."""
        return self._runs.given_up is not None and self._runs.given_up.is_bug

    def await_up(self, timeout_s: float) -> bool:
        """Whether it runs, every instance in its seat, within the timeout."""
        deadline = time.monotonic() + timeout_s
        while not self._runs.up.wait(0.05):
            if self._runs.ended.is_set() or time.monotonic() > deadline:
                return False
        return True

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        """Stop it between two epochs, split its state over ``count`` instances (None: do not), and start it again.

        between: work that is done while it is down. Returns "" when every instance of the next run is up; else why
        not, and the query goes on as it was."""
        return self._runs.repartition(count, between)
