"""What a query's checkpoint says: the offsets of its last committed epoch. Reads only."""

import json
from pathlib import Path


def last_committed_epoch(checkpoint: Path) -> int | None:
    """None where nothing was committed yet."""
    folder = checkpoint / "commits"
    numbers = [int(f.name) for f in folder.iterdir() if f.name.isdecimal()] if folder.is_dir() else []
    return max(numbers, default=None)


def committed_offsets(checkpoint: Path, by_epoch: int | None = None) -> tuple[int, ...]:
    """How many rows of each partition of the (only) replay source are committed; empty before the first commit.

    by_epoch: with that epoch, not with the last one."""
    epoch = last_committed_epoch(checkpoint) if by_epoch is None else by_epoch
    if epoch is None or epoch < 0:
        return ()
    # The file: a version line, a line of metadata, then one line for each source.
    lines = (checkpoint / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()
    return tuple(int(k) for k in json.loads(lines[-1]))
