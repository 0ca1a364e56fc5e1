"""Lines that a run has read from its source so far, each once, over all lives of its query. It only counts."""

from pathlib import Path

from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.engine import SparkEngine

SOURCE = "source"


class RowsRead:
    """Of one topology. A life of the query begins where the one before had committed."""

    def __init__(self, engine: SparkEngine, topology: str, checkpoint: Path) -> None:
        self._engine, self._topology, self._checkpoint = engine, topology, checkpoint
        self._committed_before = 0  # rows that were committed when the present life of the query began
        self._life = ""

    def rows(self) -> int:
        present = self._engine.sight.present(self._topology)
        if present is None:
            return self._committed_before
        if present.run != self._life:
            before = sum(committed_offsets(self._checkpoint, present.epoch - 1))
            self._life, self._committed_before = present.run, before
        epochs = [e for e in self._engine.epochs(self._topology) if e.run == present.run]
        lives = (life for e in epochs for i, life in e.lives.items() if i.operator == SOURCE)
        return self._committed_before + sum(life.rows_read for life in lives)
