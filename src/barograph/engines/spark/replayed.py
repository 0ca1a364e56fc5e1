"""What a death costs: the rows of the open epoch, which the next life reads and puts out again. Only counts.

As far as executors had reported them: the last fifth of a second of a killed one is not in it.
"""

from dataclasses import dataclass

from barograph.engines.spark.engine import SparkEngine

_TENTH_MS = 10


@dataclass(frozen=True, slots=True)
class Replayed:
    """epoch: the one that was open, None where none was. read: rows from sources. output: rows that had left."""

    epoch: int | None
    read: int
    output: int


def replayed(engine: SparkEngine, topology: str, run: str) -> Replayed:
    """Of the last epoch that a run began and, since it died, did not commit."""
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
        for tenth, rows in engine.output(topology).items()
        if tenth * _TENTH_MS >= last.planned_ms and (end_ms is None or tenth * _TENTH_MS < end_ms)
    )
    return Replayed(last.epoch, sum(life.rows_read for life in last.lives.values()), output)
