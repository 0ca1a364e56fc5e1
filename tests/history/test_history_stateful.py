"""A history whose writer is stopped, killed and started again, on a disk that fills and is damaged, in any order: what
was written is read back as it was, once, in order, and what is missing is marked or was damaged."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.history.test_history import decided

from barograph.history import Entry, Recorder, entries, gaps
from barograph.history import files as history_files
from barograph.history.files import parts
from barograph.model import BadInput

TOGETHER = 4
Drop = Callable[[Recorder, history_files.HistoryFile], None]
pytestmark = pytest.mark.limit(240)  # 5 s on an idle machine; a failure is made smaller first


class KilledError(BaseException):
    """As a kill: nothing in the program catches it."""


class HistoryMachine(RuleBasedStateMachine):
    """written: by their numbers, the entries that were put on the disk, and that a reader must find."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="history-"))
        self.wall_s, self.full, self.kill_in = 1000.0, False, -1
        self.written: dict[int, Entry] = {}
        self.damaged: set[int] = set()
        self.recorder: Recorder | None = None
        self.put = history_files.put
        self.ending = ExitStack()
        self.ending.enter_context(patch("barograph.history.write.put", self.limited))
        self.ending.enter_context(patch("barograph.history.write.Recorder._drop", self.dropped(Recorder._drop)))

    def teardown(self) -> None:
        self.ending.close()
        if self.recorder is not None:
            self.recorder.close()
        shutil.rmtree(self.folder)

    # --- what may go wrong ---

    def limited(self, table: pa.Table, path: Path) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.step()
        size = self.put(table, path)
        self.step()
        return size

    def dropped(self, drop: Drop) -> Drop:
        def with_steps(recorder: Recorder, part: history_files.HistoryFile) -> None:
            self.step()
            drop(recorder, part)

        return with_steps

    def step(self) -> None:
        if self.kill_in == 0:
            raise KilledError
        self.kill_in -= 1

    def found(self) -> dict[int, Entry]:
        read = list(entries(self.folder)) if parts(self.folder) else []
        assert [e.number for e in read] == sorted({e.number for e in read}), "in order, each once"
        return {e.number: e for e in read}

    # --- what is done ---

    @initialize()
    def first(self) -> None:
        self.opened()

    def opened(self) -> None:
        """What a controller that was killed had put on the disk is known by looking, as the next one does."""
        self.kill_in = -1
        held = {} if self.recorder is None else {e.number: e for e in self.recorder.held()}
        if self.recorder is not None:
            self.recorder.close()
        on_disk = self.found()
        for number in set(held) - set(on_disk):
            self.written.pop(number, None)
        self.written.update(on_disk)
        self.wall_s += 5.0
        self.recorder = Recorder(
            self.folder, "adaptive", "act", clock=lambda: self.wall_s, together=TOGETHER, held_mb=0.2
        )

    @rule(killed_in=st.one_of(st.just(-1), st.integers(0, 8)))
    def record(self, killed_in: int) -> None:
        assert self.recorder is not None
        self.wall_s += 2.0
        self.kill_in = -1 if self.full else killed_in
        try:
            entry = self.recorder.record(decided(1)[0])
        except KilledError:
            self.opened()
            return
        assert entry.number not in self.written, "a number is given once"
        if not self.full:
            assert self.recorder.held() == ()
            self.written[entry.number] = entry
            self.written.update({n: e for n, e in self.found().items() if n not in self.written})

    @rule()
    def started_again(self) -> None:
        """On a full disk what is held in memory is lost with the writer."""
        self.opened()

    @rule(is_full=st.booleans())
    def disk(self, is_full: bool) -> None:
        self.full = is_full

    @precondition(lambda self: bool(self.written))
    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        part = data.draw(st.sampled_from(parts(self.folder)))
        path = self.folder / part.path.name
        path.write_bytes(data.draw(st.sampled_from([b"", b"half a file", path.read_bytes()[:-9]])))
        self.damaged |= set(range(part.first, part.last + 1))

    @rule()
    def second_writer(self) -> None:
        assert self.recorder is not None
        if self.recorder._claim is not None:
            with pytest.raises(BadInput):
                Recorder(self.folder, "adaptive", "act", clock=lambda: self.wall_s)

    # --- what must hold ---

    @invariant()
    def read_back(self) -> None:
        found = self.found()
        for number, entry in self.written.items():
            if number not in self.damaged:
                assert found.get(number) == entry, f"entry {number}"
        if found and not self.damaged:
            assert [g for g in gaps(self.folder) if "are missing" in g] == []


TestHistory = HistoryMachine.TestCase
TestHistory.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)
