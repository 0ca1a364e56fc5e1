"""Reads a history back, also while it is being written: each entry once, oldest first."""

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from barograph.history.entry import SCHEMA, Entry, from_row
from barograph.history.files import HistoryFile, parts, take
from barograph.history.places import HistoryPath, RemoteFailed, RemotePath
from barograph.logs import OnceOnly
from barograph.model import BadInput, Cycle

log = logging.getLogger(__name__)
_warnings = OnceOnly(log)  # a history may be read again and again

SUMMARY = tuple(name for name in SCHEMA.names if name != "cycle")


def rows(
    folder: HistoryPath, columns: tuple[str, ...] = tuple(SCHEMA.names), after: int = 0
) -> Iterator[dict[str, Any]]:
    """Entries with numbers above ``after`` as rows. Files that vanish meanwhile were merged or removed."""
    require_history(folder)
    wanted = list(dict.fromkeys(("number", *columns)))
    unreadable: set[HistoryPath] = set()
    known: tuple[HistoryFile, ...] = ()
    while True:
        part = next((p for p in known if p.last > after and p.path not in unreadable), None)
        if part is None:  # all that were listed are read: is there more by now?
            known = listed(folder)
            part = next((p for p in known if p.last > after and p.path not in unreadable), None)
        if part is None:
            return
        table = _table(part, wanted)
        if table is None:
            if part.path.exists():  # damaged by a full disk or a crash: its numbers are missing
                unreadable.add(part.path)
            known = ()
            continue
        for row in _as_rows(part, table):
            if row["number"] > after:
                after = row["number"]
                yield row
        unreadable.add(part.path)  # read; a number that is missing in it is missing


def entries(folder: HistoryPath, after: int = 0) -> Iterator[Entry]:
    """Each whole; an entry that is damaged is left out, as a file is that cannot be read."""
    for row in rows(folder, after=after):
        try:
            entry = from_row(row)
        except BadInput as error:
            number = row["number"]
            _warnings.warn(f"{folder} {number}", f"entry {number} of the history {folder} is left out: {error}")
            continue
        yield entry


def cycles(folder: HistoryPath) -> Iterator[Cycle]:
    """Every cycle that was recorded."""
    for entry in entries(folder):
        if entry.cycle is not None:
            yield entry.cycle


def last_cycles(folder: HistoryPath, count: int) -> list[Cycle]:
    """The last ``count`` cycles, or all if there are fewer."""
    first = last_number(folder) - 2 * count  # gaps are among them
    return [e.cycle for e in entries(folder, after=max(0, first)) if e.cycle is not None][-count:]


def changes_since(folder: HistoryPath, application: str, at_s: float) -> Iterator[Cycle]:
    """Cycles of the application since then, by its own clock, whose plan moved, rescaled or cut something; the JSON of
    others is not read. The wall clock may have been set since."""
    if not listed(folder):
        return
    wanted = [
        r["number"]
        for r in rows(folder, ("changed", "application", "at_s"))
        if r["changed"] and r["application"] == application and r["at_s"] is not None and r["at_s"] >= at_s
    ]
    for number in wanted:
        entry = next(entries(folder, after=number - 1), None)
        if entry is not None and entry.number == number and entry.cycle is not None:
            yield entry.cycle


def last_entry(folder: HistoryPath) -> Entry | None:
    number = last_number(folder)
    found = list(entries(folder, after=number - 1)) if number else []
    return found[-1] if found else None


def gaps(folder: HistoryPath, most_cycles: float = 3.0) -> list[str]:
    """Holes that are not marked: missing numbers, and pauses of more than ``most_cycles`` cycles. One sentence each.

    Numbers that are missing before a gap are marked by it.

    An entry whose cycle covers all the time since the one before leaves no hole, however long a plan took.
    """
    found = []
    before: dict[str, Any] | None = None
    for row in rows(folder, ("wall_ms", "kind", "cycle_s", "at_s")):
        if before is not None:
            if row["number"] != before["number"] + 1 and row["kind"] != "gap":
                found.append(f"entries {before['number'] + 1} to {row['number'] - 1} are missing")
            pause_s = (row["wall_ms"] - before["wall_ms"]) / 1000.0
            both = row["kind"] == "cycle" == before["kind"]
            if both and pause_s > most_cycles * row["cycle_s"] and not _follows(row, before):
                found.append(f"nothing was recorded for {pause_s:.1f} s before entry {row['number']}")
        before = row
    return found


def _follows(row: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether its cycle begins where the one before ended, by the engine's clock, which both share."""
    begin_s, end_s = row["at_s"] - row["cycle_s"], before["at_s"]
    return bool(row["at_s"] > end_s and begin_s - end_s < 0.1 * row["cycle_s"])


def require_history(folder: HistoryPath) -> None:
    if isinstance(folder, RemotePath):
        folder.require_there()
    if not listed(folder):
        raise BadInput(f"there is no history in {str(folder)!r}")


def listed(folder: HistoryPath) -> tuple[HistoryFile, ...]:
    """Its files. BadInput where its store does not say."""
    try:
        return parts(folder)
    except RemoteFailed as error:
        raise BadInput(f"the history {str(folder)!r} cannot be read: {error}") from None


def last_number(folder: HistoryPath) -> int:
    """The largest number that a file of the history has, readable or not; 0 where there is none."""
    return max((p.last for p in listed(folder)), default=0)


def _table(part: HistoryFile, columns: list[str]) -> pa.Table | None:
    try:
        return take(part, columns)
    except FileNotFoundError:
        return None  # merged with others, or dropped, since it was listed
    except BadInput:
        raise
    except RemoteFailed as error:  # the file may be sound
        raise BadInput(f"the history file {str(part.path)!r} cannot be read: {error}") from None
    except (OSError, ValueError, pa.ArrowException) as error:  # a ValueError: names that are no text
        warn_broken(part.path, error)
        return None


def _as_rows(part: HistoryFile, table: pa.Table) -> list[dict[str, Any]]:
    """Those whose number is one that the file's name says; others are damaged."""
    try:
        found = table.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:  # text that is no UTF-8, say
        warn_broken(part.path, error)
        return []
    sound = [r for r in found if isinstance(r.get("number"), int) and part.first <= r["number"] <= part.last]
    if len(sound) < len(found):
        warn_broken(part.path, ValueError(f"{len(found) - len(sound)} entries have no valid number"))
    return sound


def warn_broken(file: HistoryPath, error: Exception) -> None:
    """A file of a history cannot be read, so its entries are missing."""
    _warnings.warn(str(file), f"the history file {file} cannot be read: {error}; its entries are left out")
