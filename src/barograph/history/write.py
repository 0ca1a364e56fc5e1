"""Records cycles. A folder has one writer at a time; readers see whole entries only.

A history that is opened again gets an entry that says for how long no controller ran. When it grows beyond its bound,
the oldest entries are removed. An entry that cannot be written, because the disk is full, is kept in memory and written
when it can be: a controller goes on deciding meanwhile.
"""

import errno
import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from barograph.config import default
from barograph.history.entry import SCHEMA, Entry, ForecastError, Gap, errors_of, to_row
from barograph.history.files import HistoryFile, parts, path_of, put, require_format, size_of, sweep, take
from barograph.history.held_entries import HeldEntries
from barograph.history.places import HistoryPath, RemoteFailed, RemotePath
from barograph.history.read import last_entry, last_number, warn_broken
from barograph.history.writer_claim import Claim, claim
from barograph.logs import OnceOnly
from barograph.model import BadInput, Cycle
from barograph.model.checks import require_positive

log = logging.getLogger(__name__)

TOGETHER = 100  # entries of one file
HELD_MB = 64.0  # of entries that cannot be written
_AGAIN_S = 15.0  # a store that does not answer holds up the cycle that asks it, so it is not asked in each
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
MOST_MB: float = default("history-size")


class Recorder:
    """Records cycles. The error of a forecast is recorded with the cycle that it was made for."""

    def __init__(
        self,
        folder: HistoryPath,
        policy: str,
        mode: str,
        most_mb: float = MOST_MB,
        clock: Callable[[], float] = time.time,
        together: int = TOGETHER,
        held_mb: float = HELD_MB,
        passed: Callable[[], float] = time.monotonic,
    ) -> None:
        """clock: of what is recorded. passed: never goes back, so that no wait is longer when the clock is set."""
        require_positive("the bound of a history, in MB", most_mb)
        self.folder, self.policy, self.mode = folder, policy, mode
        self._most_bytes, self._clock, self._passed, self._together = most_mb * 1e6, clock, passed, together
        self._recorded = 0
        # The count of the cycle it is for, the number of the entry it was made in, and that entry's cycle.
        self._forecasts: list[tuple[int, int, Cycle]] = []
        self._held = HeldEntries(held_mb * 1e6)
        self._warnings = OnceOnly(log)
        self._claim: Claim | None = None
        self._not_before_s = float("-inf")  # when writing is tried again
        self._sizes: dict[HistoryFile, int] = {}
        self._broken: set[HistoryFile] = set()  # are not merged, but count and go like others
        if isinstance(folder, RemotePath):
            folder.require_there()
        for part in parts(folder):
            try:
                require_format(part)
            except BadInput:
                raise
            except (OSError, ValueError, pa.ArrowException) as error:  # readers leave it out, too
                warn_broken(part.path, error)
        try:
            self._open()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise BadInput(f"the history {str(folder)!r} cannot be written: {error.strerror or error}") from None
            self._warn(error)
        last = last_entry(folder)
        self._next = last_number(folder) + 1
        if last is not None:
            down_s = max(0.0, clock() - last.wall_ms / 1000.0)
            self._append(self._entry(gap=Gap(down_s, "the controller was down")))

    def record(self, cycle: Cycle, horizon_cycles: int = 1) -> Entry:
        """cycle: with its outcome, if its plan was applied. horizon_cycles: how far ahead it forecasts."""
        self._recorded += 1
        due = [(made_in, earlier) for due_in, made_in, earlier in self._forecasts if due_in == self._recorded]
        errors = tuple(error for made_in, earlier in due for error in errors_of(made_in, earlier, cycle))
        entry = self._append(self._entry(cycle=cycle, errors=errors))
        self._forecasts = [f for f in self._forecasts if f[0] > self._recorded]
        self._forecasts.append((self._recorded + horizon_cycles, entry.number, cycle))
        return entry

    def held(self) -> tuple[Entry, ...]:
        """Entries that could not be written yet, oldest first."""
        return self._held.entries()

    def close(self) -> None:
        if self._claim is not None:
            self._claim.close()

    def _open(self) -> None:
        """Become the folder's writer."""
        if isinstance(self.folder, Path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._claim = claim(self.folder, self._clock, self._passed)
        sweep(self.folder)
        self._sizes = {part: size_of(part) for part in parts(self.folder)}
        self._tidy()

    def _entry(
        self, cycle: Cycle | None = None, gap: Gap | None = None, errors: tuple[ForecastError, ...] = ()
    ) -> Entry:
        return Entry(self._next, round(self._clock() * 1000), self.policy, self.mode, cycle, gap, errors)

    def _append(self, entry: Entry) -> Entry:
        """Returns it with the number under which it is kept."""
        self._next = entry.number + 1
        self._held.add(entry, _table(entry))
        if self._passed() < self._not_before_s:
            return entry
        try:
            self._write_held()
            self._merge()
            self._warnings.over("write")
            self._not_before_s = float("-inf")
        except OSError as error:  # nothing that happens to a history may stop a controller
            self._warn(error)
            if isinstance(self.folder, RemotePath):
                self._not_before_s = self._passed() + _AGAIN_S
                return entry
        self._bound()
        return replace(entry, number=self._next - 1)

    def _warn(self, error: OSError) -> None:
        kept = "entries are kept in memory until it can be, the newest if there are too many"
        what = os.strerror(error.errno) if error.errno else str(error)  # Arrow's own text is longer
        self._warnings.warn("write", f"the history {self.folder} cannot be written: {what}; {kept}")

    def _write_held(self) -> None:
        if self._claim is None:
            try:
                self._open()
            except BadInput as error:  # another controller took it while this one had no room: it may end
                raise OSError(str(error)) from None
            # Another controller may have recorded entries of these numbers meanwhile.
            by = self._held.number_from(last_number(self.folder) + 1, _table)
            self._next += by
            self._forecasts = [(due, made_in + by, cycle) for due, made_in, cycle in self._forecasts]
        else:
            self._claim.renew()
        if (lost := self._held.lost) is not None:
            # It has the number of the last lost entry; those before it are missing, as it says.
            first_kept, _ = self._held.first()
            why = f"entries {lost.first} to {lost.last} could not be written and were dropped"
            gap = Gap(max(0.0, (first_kept.wall_ms - lost.first_ms) / 1000.0), why)
            marked = Entry(lost.last, lost.last_ms, self.policy, self.mode, gap=gap)
            self._put(marked, _table(marked))
            self._held.lost = None
        while len(self._held):
            self._put(*self._held.first())
            self._held.pop()

    def _put(self, entry: Entry, table: pa.Table) -> None:
        path = path_of(self.folder, entry.number)
        self._sizes[HistoryFile(entry.number, entry.number, path)] = put(table, path)

    def _merge(self) -> None:
        singles = sorted(p for p in self._sizes if p.single and p not in self._broken)
        if len(singles) >= self._together:
            self._put_together(singles)

    def _put_together(self, singles: list[HistoryFile]) -> None:
        sound = {part: table for part in singles if (table := self._sound(part)) is not None}
        if not sound:
            return
        whole = HistoryFile(min(sound).first, max(sound).last, path_of(self.folder, min(sound).first, max(sound).last))
        self._sizes[whole] = put(pa.concat_tables(list(sound.values())), whole.path)
        for part in sound:
            self._drop(part)

    def _sound(self, part: HistoryFile) -> pa.Table | None:
        """None if the file is damaged, as readers say too: it is left as it is, and not tried again. An OSError says
        that it cannot be read now: then nothing is merged, since its entries belong between those of the others."""
        try:
            table = take(part)
            if table.schema.equals(SCHEMA):
                return table
            raise ValueError("it has other columns")
        except FileNotFoundError as error:
            warn_broken(part.path, error)
            self._sizes.pop(part)
        except (OSError, ValueError, pa.ArrowException) as error:
            # Arrow says of contents that make no sense that they are an OSError too, but one without a number.
            if isinstance(error, RemoteFailed) or (isinstance(error, OSError) and error.errno is not None):
                raise
            warn_broken(part.path, error)
            self._broken.add(part)
        return None

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
        self._broken.discard(part)


def _table(entry: Entry) -> pa.Table:
    return pa.Table.from_pylist([to_row(entry)], schema=SCHEMA)
