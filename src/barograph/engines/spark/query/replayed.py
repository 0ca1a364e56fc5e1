"""What a death costs: the rows of the open epoch, which the next query run reads and puts out again. It only counts.

Only rows that executors had reported are counted: the last fifth of a second of a killed executor is missing.
"""

from dataclasses import dataclass

from barograph.engines.spark.engine import SparkEngine

_CENTISECOND_MS = 10


@dataclass(frozen=True, slots=True)
class Replayed:
    """epoch: the open one, None if there was none. read: rows from sources. output: rows that had left."""

    epoch: int | None
    read: int
    output: int


@dataclass(frozen=True, slots=True)
class Restart:
    """A death and the restart after it. at_ms: since 1970. down_s: from when the death was noticed until every instance
    of the next run is up. rows: what the dead run had read and put out since its last commit, which is repeated."""

    at_ms: int
    cause: str
    epoch: int | None
    down_s: float
    rows: Replayed

    def told(self) -> str:
        again = f"{self.rows.read} rows of epoch {self.epoch} are" if self.epoch is not None else "no row is"
        return f"after {self.down_s:.2f} s, and {again} read again: {self.cause}"


def replayed(engine: SparkEngine, topology: str, run: str) -> Replayed:
    """Of the last epoch that a query run began and, because it died, did not commit."""
    engine.refresh()
    of_run = [e for e in engine.epochs(topology) if e.run == run and e.planned_ms > 0]
    if not of_run:
        return Replayed(None, 0, 0)
    # An epoch's rows all leave after it is planned, and the one before had ended by then.
    last = max(of_run, key=lambda e: e.epoch)
    successors = [e.planned_ms for e in engine.epochs(topology) if e.run != run and e.planned_ms > last.planned_ms]
    end_ms = min(successors, default=None)
    output = sum(
        rows
        for centisecond, rows in engine.output(topology).items()
        if last.planned_ms <= centisecond * _CENTISECOND_MS
        and (end_ms is None or centisecond * _CENTISECOND_MS < end_ms)
    )
    return Replayed(last.epoch, sum(life.rows_read for life in last.lives.values()), output)
