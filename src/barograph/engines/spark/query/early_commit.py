"""Commits what a restarted query reads again as soon as it has read it, so that the next failure does not repeat it.

A restart repeats the open epoch of the dead run. Once the next run has read as many rows, its epoch is cut: without
that it would last for its whole length, and a failure meanwhile would repeat the same rows once more.
"""

import logging
from typing import Protocol

from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.query.replayed import Replayed

log = logging.getLogger(__name__)

LOOK_S = 0.25  # while rows are read again; each look costs the driver CPU
CALM_S = 60.0  # nothing is left to read again; the end of the run is noticed at once all the same


class EndsEpochs(Protocol):
    """What an engine offers for it."""

    def refresh(self) -> None: ...

    def present(self, topology: str) -> EpochSeen | None: ...

    def epochs(self, topology: str) -> list[EpochSeen]: ...

    def end_epoch(self, topology: str) -> None: ...


class EarlyCommit:
    """Of one query. Call ``died`` after each death, and ``look`` as often as it says."""

    def __init__(self, engine: EndsEpochs, topology: str) -> None:
        self._engine, self._topology = engine, topology
        self._again = 0  # rows from the start of the present run that an earlier run had read

    def died(self, run: str, rows: Replayed) -> None:
        """A run has died. rows: what its open epoch had read. A run that dies while it reads again has not read all
        of it, so what it left counts too."""
        left = self._again - sum(_read(epoch) for epoch in self._of(run)[:-1])
        self._again = max(rows.read, left)

    def look(self, run: str) -> float:
        """End the present epoch of a run if all is read again. Returns the seconds until the next look."""
        if not self._again:
            return CALM_S
        self._engine.refresh()
        present = self._engine.present(self._topology)
        if present is None or present.run != run:
            return LOOK_S
        committed = sum(_read(epoch) for epoch in self._of(run) if epoch.epoch < present.epoch)
        if committed + _read(present) < self._again:
            return LOOK_S
        if committed < self._again:
            log.info("%s has read again the %d rows of its last run, and commits them", self._topology, self._again)
            self._engine.end_epoch(self._topology)
        self._again = 0
        return CALM_S

    def _of(self, run: str) -> list[EpochSeen]:
        """The epochs of a run, oldest first. All but the last are committed."""
        return sorted((e for e in self._engine.epochs(self._topology) if e.run == run), key=lambda e: e.epoch)


def _read(epoch: EpochSeen) -> int:
    return sum(life.rows_read for life in epoch.lives.values())
