"""Input rows that a run has read so far, each counted once over all starts of its query. It only counts."""

from pathlib import Path

from barograph.engines.spark.interfaces import WatchedQueries
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.model import Topology


class RowsRead:
    """Of one topology. A started query begins where the one before it had committed."""

    def __init__(self, engine: WatchedQueries, topology: Topology, checkpoint: Path) -> None:
        self._engine, self._topology, self._checkpoint = engine, topology.name, checkpoint
        self._sources = {o.name for o in topology.operators if o.source}
        self._committed_before = 0  # rows that were committed when the query was last started
        self._run = ""

    def rows(self) -> int:
        present = self._engine.present(self._topology)
        if present is None:
            return self._committed_before
        if present.run != self._run:
            before = sum(committed_offsets(self._checkpoint, present.epoch - 1))
            self._run, self._committed_before = present.run, before
        epochs = [e for e in self._engine.epochs(self._topology) if e.run == present.run]
        lives = (life for e in epochs for i, life in e.lives.items() if i.operator in self._sources)
        return self._committed_before + sum(life.rows_read for life in lives)
