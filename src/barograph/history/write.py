"""Records cycles. A folder has one writer at a time; readers see whole entries only.

A history that is opened again gets an entry that says for how long no controller ran. When it grows beyond its bound,
the oldest entries are removed.
"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pyarrow as pa

from barograph.config import default
from barograph.history.entry import SCHEMA, Entry, ForecastError, Gap, errors_of, to_row
from barograph.history.files import HistoryFile, parts, path_of, put, require_format, sweep, take
from barograph.history.read import last_entry, warn_broken
from barograph.model import BadInput, Cycle
from barograph.model.checks import require_positive

TOGETHER = 100  # entries of one file
MOST_MB: float = default("history-size")


class Recorder:
    """Records cycles. The error of a forecast is recorded with the cycle that it was made for."""

    def __init__(
        self,
        folder: Path,
        policy: str,
        mode: str,
        most_mb: float = MOST_MB,
        clock: Callable[[], float] = time.time,
        together: int = TOGETHER,
    ) -> None:
        require_positive("the bound of a history, in MB", most_mb)
        self.folder, self.policy, self.mode = folder, policy, mode
        self._most_bytes, self._clock, self._together = most_mb * 1e6, clock, together
        self._recorded = 0
        # The count of the cycle it is for, the number of the entry it was made in, and that entry's cycle.
        self._forecasts: list[tuple[int, int, Cycle]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder)
        except OSError as error:
            raise BadInput(f"the history {str(folder)!r} cannot be written: {error.strerror}") from None
        for part in parts(folder):
            try:
                require_format(part)
            except (OSError, pa.ArrowException) as error:  # readers leave it out, too
                warn_broken(part.path, error)
        sweep(folder)
        self._sizes = {part: part.path.stat().st_size for part in parts(folder)}
        self._tidy()
        last = last_entry(folder)
        self._next = 1 if last is None else last.number + 1
        if last is not None:
            down_s = max(0.0, clock() - last.wall_ms / 1000.0)
            self._append(self._entry(gap=Gap(down_s, "the controller was down")))

    def record(self, cycle: Cycle, horizon_cycles: int = 1) -> Entry:
        """cycle: with its outcome, if its plan was applied. horizon_cycles: how far ahead it forecasts."""
        self._recorded += 1
        due = [(made_in, earlier) for due_in, made_in, earlier in self._forecasts if due_in == self._recorded]
        errors = tuple(error for made_in, earlier in due for error in errors_of(made_in, earlier, cycle))
        entry = self._entry(cycle=cycle, errors=errors)
        self._append(entry)
        self._forecasts = [f for f in self._forecasts if f[0] > self._recorded]
        self._forecasts.append((self._recorded + horizon_cycles, entry.number, cycle))
        return entry

    def close(self) -> None:
        self._lock.close()

    def _entry(
        self, cycle: Cycle | None = None, gap: Gap | None = None, errors: tuple[ForecastError, ...] = ()
    ) -> Entry:
        return Entry(self._next, round(self._clock() * 1000), self.policy, self.mode, cycle, gap, errors)

    def _append(self, entry: Entry) -> None:
        path = path_of(self.folder, entry.number)
        size = put(pa.Table.from_pylist([to_row(entry)], schema=SCHEMA), path)
        self._sizes[HistoryFile(entry.number, entry.number, path)] = size
        self._next += 1
        singles = sorted(p for p in self._sizes if p.single)
        if len(singles) >= self._together:
            self._put_together(singles)
        self._bound()

    def _put_together(self, singles: list[HistoryFile]) -> None:
        path = path_of(self.folder, singles[0].first, singles[-1].last)
        table = pa.concat_tables([take(p) for p in singles])
        self._sizes[HistoryFile(singles[0].first, singles[-1].last, path)] = put(table, path)
        for part in singles:
            self._drop(part)

    def _bound(self) -> None:
        while sum(self._sizes.values()) > self._most_bytes and len(self._sizes) > 1:
            self._drop(min(self._sizes))

    def _tidy(self) -> None:
        """Remove entries that are there twice, because a writer died while it merged them."""
        wholes = [p for p in self._sizes if not p.single]
        for part in [p for p in self._sizes if p.single and any(w.first <= p.first <= w.last for w in wholes)]:
            self._drop(part)

    def _drop(self, part: HistoryFile) -> None:
        part.path.unlink(missing_ok=True)
        self._sizes.pop(part, None)


def _locked(folder: Path) -> IO[bytes]:
    file = (folder / ".writer").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise BadInput(f"another controller records into {str(folder)!r}") from None
    os.set_inheritable(file.fileno(), False)
    return file
