"""The deaths of a query's runs since its last committed epoch. It looks at the engine, and starts nothing."""

import logging
from collections.abc import Collection, Sequence

from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.bridge.query_run import EndKind, QueryRunEnd
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.failures.diagnosis import (
    Death,
    GivenUp,
    RestartLimits,
    diagnose,
    diagnose_failed_start,
    give_up,
    never_fits,
    too_few_seats,
    wait_s,
)
from barograph.engines.spark.tolerated import tolerated

log = logging.getLogger(__name__)

KEPT = 1000  # an epoch may last for days


def error_of(dead: StreamingQuery, text: str) -> Exception:
    """Spark's exception of a run that died. text: what is known of it else."""
    with tolerated(log, "Spark's exception is lost", Exception):
        return dead.exception() or RuntimeError(text)
    return RuntimeError(text)


def planned_epochs(engine: SparkEngine, topology: str, runs: Collection[str]) -> list[int]:
    """Epochs that these runs began. All but the last of a run are committed."""
    return [e.epoch for e in engine.epochs(topology) if e.run in runs and e.planned_ms > 0]


class PostMortem:
    """Of one query. runs: Spark's ids of its runs so far. was_up: whether one of them had all its instances up."""

    def __init__(self, engine: SparkEngine, limits: RestartLimits) -> None:
        self._engine, self._limits = engine, limits
        self.runs: set[str] = set()
        self.was_up = False
        self._deaths: list[Death] = []
        self._committed: int | None = None

    def examine(
        self,
        topology: str,
        text: str,
        died_s: float,
        dead_run: str,
        began_with: Sequence[str],
        not_started: Exception | None = None,
    ) -> Death:
        """Say why the run died, and note it. began_with: its executors. not_started: the next run could not be
        started because of this error."""
        living = set(self._engine.living()[0])
        if not self.was_up and self._engine.stillborn():
            began_with = ()  # an executor that ends as it starts is not a loss: another one would end as well
        lost = [self._engine.where(e) for e in began_with if e not in living]
        self._engine.refresh()
        if not_started is not None and not lost:
            death = diagnose_failed_start(not_started, died_s, self.was_up)
        else:
            planned = planned_epochs(self._engine, topology, {dead_run})
            death = diagnose(text, died_s, max(planned, default=None), lost, self.was_up)
        committed = max(planned_epochs(self._engine, topology, self.runs), default=None)
        if committed != self._committed:  # an epoch was committed since the last death: the count starts again
            self._deaths.clear()
            self._committed = committed
        self._deaths.append(death)
        del self._deaths[:-KEPT]
        # A query that does not fit at its first start gets a size that does, and that is said then.
        level = logging.INFO if death.needed_seats and not self.was_up else logging.WARNING
        log.log(level, "%s has died: %s; death %d since its last commit", topology, death.text, len(self._deaths))
        return death

    def why_given_up(self) -> GivenUp | None:
        if not self.was_up:
            seats = self._engine.seats
            if (why := never_fits(self._deaths, seats, self._engine.can_grow(), self._engine.stillborn())) is not None:
                return why
        return give_up(self._deaths, self._limits)

    def in_vain(self, topology: str, waited_s: float) -> QueryRunEnd | None:
        """The end of a run that has never been up because every executor has ended as it started. Spark would wait for
        executors for ever."""
        if self.was_up or waited_s <= self._limits.patience_s or self._engine.living()[0]:
            return None
        if not self._engine.stillborn():
            return None
        return QueryRunEnd(EndKind.DIED, too_few_seats(max(1, self._engine.fit(topology, None)), 0))

    def forget(self) -> None:
        """What was wrong has been changed: earlier deaths do not count."""
        self._deaths.clear()

    def wait_s(self) -> float:
        """Before the next run is started."""
        return wait_s(self._deaths, self._limits)
