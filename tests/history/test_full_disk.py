"""A history whose disk is full loses nothing as long as memory lasts, and marks what it lost after that."""

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.history.test_history import decided, recorder
from tests.small_disk import fill, small_disk

from barograph.history import entries, gaps
from barograph.history.files import HistoryFile, put, take
from barograph.history.places import RemoteFailed
from barograph.history.writer_claim import claim
from barograph.model import BadInput

PUT, TAKE, CLAIM = (f"barograph.history.write.{name}" for name in ("put", "take", "claim"))


def full(*_: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_entries_of_a_full_disk_are_written_when_there_is_room_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        history = recorder(disk / "history")
        written = [history.record(cycle) for cycle in decided(2)]
        filler = fill(disk)
        written += [history.record(cycle) for cycle in decided(3)]
        assert list(entries(disk / "history")) == written[:2]
        assert not list((disk / "history").glob(".cycle*")), "no half file is left"
        filler.unlink()
        written += [history.record(cycle) for cycle in decided(1)]
        assert list(entries(disk / "history")) == written
        assert [e.number for e in written] == [1, 2, 3, 4, 5, 6]
        assert gaps(disk / "history") == []
        history.close()
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == [
        f"the history {disk / 'history'} cannot be written: No space left on device; entries are kept in memory until "
        "it can be, the newest if there are too many"
    ]


def test_a_controller_can_start_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        filler = fill(disk)
        (disk / "history").mkdir()
        first = recorder(disk / "history")
        first.record(decided(1)[0])
        filler.unlink()
        first.record(decided(2)[1])
        first.close()
        fill(disk)
        second = recorder(disk / "history")  # the entry that says how long it was down has no room
        second.record(decided(3)[2])
        assert [e.number for e in entries(disk / "history")] == [1, 2]
        filler.unlink()
        second.record(decided(4)[3])
        assert [(e.number, e.gap is not None) for e in entries(disk / "history")] == [
            (1, False), (2, False), (3, True), (4, False), (5, False),
        ]  # fmt: skip
        second.close()


@pytest.mark.parametrize("held_mb", [64.0, 1e-9], ids=["all in memory", "the newest in memory"])
def test_entries_of_another_controller_meanwhile_are_kept(
    held_mb: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began on a full disk, and so without a claim; another one records and ends before there is room for it."""
    cycles = decided(6)
    monkeypatch.setattr(CLAIM, full)
    early = recorder(tmp_path, held_mb=held_mb)
    for cycle in cycles[:2]:
        early.record(cycle)
    monkeypatch.setattr(CLAIM, claim)
    other = recorder(tmp_path)
    theirs = [other.record(cycle) for cycle in cycles[:3]]
    early.record(cycles[2])
    assert list(entries(tmp_path)) == theirs, "one controller records at a time"
    other.close()
    last = [early.record(cycle) for cycle in cycles[3:]][-1]
    found = list(entries(tmp_path))
    assert found[:3] == theirs and found[-1] == last
    assert gaps(tmp_path) == []
    if held_mb > 1.0:
        assert [e.number for e in found] == list(range(1, 10)), "nothing is lost"
        assert [e.cycle for e in found[3:]] == cycles
    else:
        assert found[3].gap is not None and found[3].gap.why == "entries 4 to 6 could not be written and were dropped"
    errors = [error for e in found[3:] for error in e.errors]
    assert all(error.made_in > 3 for error in errors)
    early.close()


def test_what_memory_cannot_hold_is_dropped_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = recorder(tmp_path, held_mb=1e-9)  # the newest entry only
    history.record(decided(1)[0])
    monkeypatch.setattr(PUT, full)
    lost = [history.record(cycle) for cycle in decided(4)]
    monkeypatch.setattr(PUT, put)
    last = history.record(decided(5)[4])
    found = list(entries(tmp_path))
    assert [e.number for e in found] == [1, 5, 6] and found[-1] == last
    assert found[1].gap is not None and found[1].cycle is None
    assert found[1].gap.why == "entries 2 to 5 could not be written and were dropped"
    assert found[1].gap.seconds == pytest.approx((last.wall_ms - lost[0].wall_ms) / 1000)
    assert gaps(tmp_path) == []
    (tmp_path / "cycle-0000000005.parquet").unlink()
    assert gaps(tmp_path)[0] == "entries 2 to 5 are missing", "without the mark they are a fault"


def test_files_that_cannot_be_merged_are_merged_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = recorder(tmp_path, together=3)
    written = [history.record(cycle) for cycle in decided(2)]
    monkeypatch.setattr(PUT, lambda table, path: full() if "cycles-" in path.name else put(table, path))
    written += [history.record(cycle) for cycle in decided(2)]
    assert list(entries(tmp_path)) == written
    monkeypatch.setattr(PUT, put)
    written.append(history.record(decided(1)[0]))
    assert list(entries(tmp_path)) == written
    assert [p.name for p in tmp_path.glob("cycle*")] == ["cycles-0000000001-0000000005.parquet"]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, "no descriptor"), OSError(errno.EIO, "no answer"), RemoteFailed("the store is away")],
    ids=["descriptors", "disk", "store"],
)
def test_a_file_that_cannot_be_read_for_a_moment_is_merged_later(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(part: HistoryFile, *_: Any) -> pa.Table:
        if part.first == 2:
            raise error
        return take(part)

    history = recorder(tmp_path, together=3)
    written = [history.record(cycle) for cycle in decided(2)]
    monkeypatch.setattr(TAKE, failing)
    written += [history.record(cycle) for cycle in decided(2)]
    assert list(entries(tmp_path)) == written
    assert [p.name for p in tmp_path.glob("cycles-*")] == [], "its entry belongs between the others"
    monkeypatch.setattr(TAKE, take)
    written.append(history.record(decided(1)[0]))
    assert list(entries(tmp_path)) == written
    assert [p.name for p in tmp_path.glob("cycle*")] == ["cycles-0000000001-0000000005.parquet"]


def test_a_damaged_file_counts_and_goes_as_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file counts as 1 kB, and there is room for four."""
    monkeypatch.setattr(PUT, lambda table, path: 1000 if put(table, path) else 0)
    history = recorder(tmp_path, together=3, most_mb=0.004)
    second = tmp_path / "cycle-0000000002.parquet"
    for cycle in decided(3):
        if history.record(cycle).number == 2:
            second.write_bytes(b"half a file")
    assert second.exists()
    for cycle in decided(8):
        history.record(cycle)
    assert not second.exists()
    assert len(list(tmp_path.glob("cycle*"))) == 4


def test_a_controller_decides_on_while_another_one_has_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk was full when it started, so it could not claim the folder, and another one did."""
    monkeypatch.setattr(CLAIM, full)
    history = recorder(tmp_path)
    monkeypatch.setattr(CLAIM, claim)
    other = recorder(tmp_path)
    written = [history.record(cycle) for cycle in decided(2)]
    assert history.held() == tuple(written)
    assert [r for r in caplog.records if "another controller records into" in r.message]
    other.close()
    written += [history.record(decided(3)[2])]
    assert list(entries(tmp_path)) == written
    history.close()


@pytest.mark.parametrize("damaged", [b"half a file", None], ids=["damaged", "other columns"])
def test_a_damaged_file_is_left_out_when_files_are_merged(damaged: bytes | None, tmp_path: Path) -> None:
    history = recorder(tmp_path, together=4)
    written = [history.record(cycle) for cycle in decided(3)]
    second = tmp_path / "cycle-0000000002.parquet"
    if damaged is None:
        put(pa.table({"number": [2]}), second)
    else:
        second.write_bytes(damaged)
    written += [history.record(cycle) for cycle in decided(5)]
    assert [e for e in entries(tmp_path) if e.number != 2] == [written[0], *written[2:]]
    assert second.exists() and len(list(tmp_path.glob("cycles-*"))) == 2, "the others are merged"


def test_numbers_go_on_after_a_last_file_that_cannot_be_read(tmp_path: Path) -> None:
    history = recorder(tmp_path)
    for cycle in decided(3):
        history.record(cycle)
    history.close()
    (tmp_path / "cycle-0000000003.parquet").write_bytes(b"half a file")
    again = recorder(tmp_path)
    assert again.record(decided(1)[0]).number > 3


def test_a_folder_that_can_never_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        recorder(tmp_path / "file" / "history")
