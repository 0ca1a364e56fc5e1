"""The files of a history: which there are, what each holds, and how one appears whole or not at all.

    cycle-0000000042.parquet                 one entry, just written
    cycles-0000000001-0000000100.parquet     a hundred of them, merged so that there are not too many files

While entries are merged both are there for a moment; a reader goes by numbers and sees each entry once. Files
whose name begins with a dot are being written, or are left from a crash, or say who writes; they are never read.

Each file says in its metadata which format its entries have. A file of another format is refused, never guessed at.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from barograph.history.places import HistoryPath, RemotePath
from barograph.model import BadInput

FORMAT = 10
"""Of the entries. Raise it whenever this program could not read what an older one wrote, or the other way round:
when a field of a recorded value, a column or a code is added, renamed or removed. Files without a number have format 0:
their reasons have no codes. Entries of format 1 do not say which application they are of, those of format 2 not what
was left out of a plan; format 4 has the code of figures that are too old, format 5 quotas, exclusions and their codes,
format 6 operators that scale together, format 7 targets for the p99 and their codes,
format 8 hot instances, format 9 latencies by record times, format 10 ages of topologies and
edges, and codes of nodes that were kept.
"""
_KEY = b"barograph.format"
_NAME = re.compile(r"cycles?-(\d{10})(?:-(\d{10}))?\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class HistoryFile:
    """A file with the entries from first to last."""

    first: int
    last: int
    path: HistoryPath

    @property
    def single(self) -> bool:
        return self.path.name.startswith("cycle-")


def parts(folder: HistoryPath) -> tuple[HistoryFile, ...]:
    """What there is now, oldest first; of files that overlap, the one with more entries comes first."""
    found = []
    for name in _names(folder):
        match = _NAME.fullmatch(name)
        if match is not None:
            found.append(HistoryFile(int(match[1]), int(match[2] or match[1]), folder / name))
    return tuple(sorted(found, key=lambda p: (p.first, -p.last)))


def _names(folder: HistoryPath) -> list[str]:
    if not isinstance(folder, Path):
        return folder.names()
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def path_of(folder: HistoryPath, first: int, last: int | None = None) -> HistoryPath:
    name = f"cycle-{first:010d}" if last is None else f"cycles-{first:010d}-{last:010d}"
    return folder / f"{name}.parquet"


def put(table: pa.Table, path: HistoryPath) -> int:
    """Write a file under a name that is never read, then rename it. Returns its size."""
    stamped = table.replace_schema_metadata({_KEY: str(FORMAT).encode()})
    if not isinstance(path, Path):
        content = pa.BufferOutputStream()
        pq.write_table(stamped, content, compression="zstd")  # type: ignore[no-untyped-call]
        whole = content.getvalue().to_pybytes()
        path.write(whole)
        return len(whole)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Only the owner can read it: a history tells names and loads of queries.
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            pq.write_table(stamped, file, compression="zstd")  # type: ignore[no-untyped-call]
        size = temporary.stat().st_size
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)  # half a file would fill a full disk further
        raise
    return size


def take(part: HistoryFile, columns: list[str] | None = None) -> pa.Table:
    """What a file holds. Raises BadInput where it has another format."""
    # What a store fails to send is told apart from damaged contents only where all of it is fetched first.
    if columns is None and isinstance(part.path, RemotePath):
        source: Any = pa.BufferReader(part.path.read())
    else:
        source = _source(part.path)
    with pq.ParquetFile(source) as file:  # type: ignore[no-untyped-call]
        _require_format(part.path, file.schema_arrow.metadata)
        return file.read(columns=columns)


def require_format(part: HistoryFile) -> None:
    """Raises BadInput where the file has another format."""
    _require_format(part.path, pq.read_schema(_source(part.path)).metadata)  # type: ignore[no-untyped-call]


def size_of(part: HistoryFile) -> int:
    return part.path.stat().st_size if isinstance(part.path, Path) else part.path.size()


def _source(path: HistoryPath) -> Any:
    return path if isinstance(path, Path) else path.open()


def _require_format(path: HistoryPath, metadata: Mapping[bytes, bytes] | None) -> None:
    found = (metadata or {}).get(_KEY, b"0").decode(errors="replace")
    if found != str(FORMAT):
        known = f"the file {path.name} in the history {str(path.parent)!r} has format {found}"
        advice = "read it with the version of Barograph that wrote it, and record into another folder"
        raise BadInput(f"{known}, and this version of Barograph reads only format {FORMAT}: {advice}")


def sweep(folder: HistoryPath) -> None:
    """Remove what a crash left half-written."""
    for name in _names(folder):
        if fnmatch(name, ".cycle*.parquet.*"):
            (folder / name).unlink(missing_ok=True)
