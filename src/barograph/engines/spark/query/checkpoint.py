"""A query's checkpoint: where it is, and the offsets of its last committed epoch. Reads only."""

import json
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from barograph.model import BadInput


def checkpoint_of(query: StreamingQuery) -> str:
    """The folder, as Spark resolved it."""
    execution = query._jsq.streamingQuery() if hasattr(query._jsq, "streamingQuery") else query._jsq
    return str(execution.resolvedCheckpointRoot())


def require_kept_checkpoint(query: StreamingQuery) -> None:
    """Stop and refuse a query with a temporary checkpoint: every restart would begin from nothing."""
    if "/temporary-" in checkpoint_of(query):
        query.stop()
        raise BadInput("a supervised query needs a checkpoint: .option('checkpointLocation', FOLDER)")


def last_committed_epoch(checkpoint: Path) -> int | None:
    """None if nothing was committed yet."""
    folder = checkpoint / "commits"
    numbers = [int(f.name) for f in folder.iterdir() if f.name.isdecimal()] if folder.is_dir() else []
    return max(numbers, default=None)


def committed_offsets(checkpoint: Path, by_epoch: int | None = None) -> tuple[int, ...]:
    """How many rows of each partition are committed; empty before the first commit.

    Only for queries whose sources are all replay sources, or topics read from their beginning: the partitions of all of
    them, one source after the other.
    by_epoch: count up to the end of that epoch instead of the last committed one."""
    epoch = last_committed_epoch(checkpoint) if by_epoch is None else by_epoch
    if epoch is None or epoch < 0:
        return ()
    # The file: a version line, a line of metadata, then one line for each source.
    lines = (checkpoint / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()
    return tuple(k for line in lines[2:] for k in _rows(json.loads(line)))


def _rows(offset: list[int] | dict[str, dict[str, int]]) -> list[int]:
    """Of the replay source a list; of Kafka by topic and partition."""
    if isinstance(offset, list):
        return [int(k) for k in offset]
    return [int(k) for _, partitions in sorted(offset.items()) for _, k in sorted(partitions.items(), key=_number)]


def _number(partition: tuple[str, int]) -> int:
    return int(partition[0])
