"""What a checkpoint says of its committed epochs: which rows each one read, and by which watermark. Reads only."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.query.checkpoint import committed_offsets, last_committed_epoch

Offsets = Callable[[Path, int], tuple[int, ...]]
"""Of a checkpoint, by the end of an epoch: how many rows of each partition were read."""


@dataclass(frozen=True)
class Epoch:
    """begin, end: rows of each partition that were read before it, and by its end.

    late_ms: rows that belong to a time up to here are dropped. kept_ms: state up to here is removed at its end. Spark
    works out both between epochs: the watermark of the epoch before, and its own.
    """

    number: int
    begin: tuple[int, ...]
    end: tuple[int, ...]
    late_ms: int
    kept_ms: int


def topic_offsets(checkpoint: Path, epoch: int) -> tuple[int, ...]:
    """Where the source is a topic: {topic: {partition: offset}}."""
    found = json.loads((checkpoint / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()[2])
    (offsets,) = found.values()
    return tuple(int(offsets[partition]) for partition in sorted(offsets, key=int))


def committed_epochs(checkpoint: Path, partitions: int, offsets: Offsets = committed_offsets) -> tuple[Epoch, ...]:
    """All of them: Spark keeps a hundred, and a test has fewer."""
    found: list[Epoch] = []
    begin, late_ms = (0,) * partitions, 0
    for number in range((last_committed_epoch(checkpoint) or 0) + 1):
        end, kept_ms = offsets(checkpoint, number), _watermark_ms(checkpoint, number)
        found.append(Epoch(number, begin, end, late_ms, kept_ms))
        begin, late_ms = end, kept_ms
    return tuple(found)


def epoch_of(epochs: Sequence[Epoch], partition: int, k: int) -> Epoch | None:
    """The epoch that read a row; None if none has committed it."""
    return next((e for e in epochs if e.begin[partition] <= k < e.end[partition]), None)


def _watermark_ms(checkpoint: Path, epoch: int) -> int:
    metadata = (checkpoint / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()[1]
    return int(json.loads(metadata)["batchWatermarkMs"])
