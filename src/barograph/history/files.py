"""The files of a history: which there are, what each holds, and how one appears whole or not at all.

    cycle-0000000042.parquet                 one entry, just written
    cycles-0000000001-0000000100.parquet     a hundred of them, put together so that there are not too many files

While entries are put together both are there for a moment; who reads goes by numbers and sees each once. Names with a
dot in front are being written, or are left from a crash; nobody reads them.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_NAME = re.compile(r"cycles?-(\d{10})(?:-(\d{10}))?\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A file with the entries from first to last."""

    first: int
    last: int
    path: Path

    @property
    def single(self) -> bool:
        return self.path.name.startswith("cycle-")


def parts(folder: Path) -> tuple[Part, ...]:
    """What there is now, oldest first; of files that overlap the one with more comes first."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            found.append(Part(int(match[1]), int(match[2] or match[1]), path))
    return tuple(sorted(found, key=lambda p: (p.first, -p.last)))


def path_of(folder: Path, first: int, last: int | None = None) -> Path:
    name = f"cycle-{first:010d}" if last is None else f"cycles-{first:010d}-{last:010d}"
    return folder / f"{name}.parquet"


def put(table: pa.Table, path: Path) -> int:
    """Write a file under a name nobody reads, then give it its own. Its size."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, temporary, compression="zstd")  # type: ignore[no-untyped-call]
    size = temporary.stat().st_size
    temporary.replace(path)
    return size


def take(part: Part, columns: list[str] | None = None) -> pa.Table:
    """What a file holds."""
    with pq.ParquetFile(part.path) as file:  # type: ignore[no-untyped-call]
        return file.read(columns=columns)


def sweep(folder: Path) -> None:
    """Remove what a crash left half-written."""
    for path in folder.glob(".cycle*.parquet.*"):
        path.unlink(missing_ok=True)
