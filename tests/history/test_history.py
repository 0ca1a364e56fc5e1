"""Cycles are read back as they were, also while they are being written, and every gap is marked."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cycles import word_count_cycles

from barograph.control.decide import decide
from barograph.history import Entry, Gap, Recorder, cycles, entries, gaps, last_cycles
from barograph.history.entry import SCHEMA
from barograph.history.files import FORMAT, parts
from barograph.history.read import changes_since
from barograph.model import BadInput, Cycle, Outcome, Plan, ReasonCode, Refusal, RefusalCode
from barograph.policy.registry import named


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        self.now_s += 10.0
        return self.now_s


@cache
def _five() -> tuple[Cycle, ...]:
    found: list[Cycle] = []
    for snapshot in word_count_cycles():
        cycle = decide(named("adaptive"), found, snapshot)
        found.append(replace(cycle, outcome=Outcome(("all",), (), 0.4)))
    return tuple(found)


def decided(count: int = 5) -> list[Cycle]:
    return [*(_five() * (1 + count // 5))[:count]]


def files(folder: Path) -> list[Path]:
    return [folder / p.path.name for p in parts(folder)]


def recorder(folder: Path, **more: object) -> Recorder:
    return Recorder(folder, "adaptive", "act", **{"clock": Clock(), **more})  # type: ignore[arg-type]  # by name


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    made = decided()
    with_refusal = replace(made[1], outcome=Outcome(refused=(Refusal("the plan", RefusalCode.STALE, "too old"),)))
    made[1] = with_refusal
    made[2] = replace(made[2], outcome=None)
    history = recorder(tmp_path)
    written = [history.record(cycle) for cycle in made]
    found = list(entries(tmp_path))
    assert found == written
    assert [e.cycle for e in found] == made
    assert [e.number for e in found] == [1, 2, 3, 4, 5]
    assert list(cycles(tmp_path)) == made
    assert last_cycles(tmp_path, 2) == made[-2:]


def test_the_error_of_a_forecast_is_recorded_when_its_cycle_has_been_observed(tmp_path: Path) -> None:
    made = decided()
    history = recorder(tmp_path)
    written = [history.record(cycle, horizon_cycles=2) for cycle in made]
    assert [len(e.errors) for e in written] == [0, 0, 3, 3, 3]
    error = next(e for e in written[4].errors if e.operator == "split")
    forecast = made[2].forecast.of("wc", "split")
    assert forecast is not None
    assert error.made_in == 3
    assert error.error_rows == made[4].snapshot.metrics.of_operator("wc", "split").arrived - forecast.arrived


def test_columns_of_an_entry(tmp_path: Path) -> None:
    made = decided(1)
    recorder(tmp_path).record(made[0])
    (part,) = parts(tmp_path)
    (row,) = pq.ParquetFile(part.path).read().to_pylist()  # type: ignore[no-untyped-call]
    assert list(row) == SCHEMA.names
    assert row["kind"] == "cycle" and row["policy"] == "adaptive" and row["mode"] == "act"
    assert [o["operator"] for o in row["operators"]] == ["spout", "split", "count"]
    assert row["operators"][1]["arrived"] == 1000.0
    assert len(row["moves"]) == 12 and row["changed"]
    assert row["moves"][0]["source"] is None
    assert row["done"] == ["all"] and row["order_to_commit_s"] == 0.4
    forecast, demand = made[0].forecast.operators, made[0].demand.operators
    reasons = [*(o.reason for o in forecast), *(o.reason for o in demand), *made[0].plan.reasons]
    assert [(r["about"], r["code"], r["why"], dict(r["numbers"])) for r in row["reasons"]] == [
        (r.about, r.code.value, r.why, r.numbers) for r in reasons if r is not None
    ]
    codes = [r["code"] for r in row["reasons"] if r["about"] == "wc/split"]
    assert codes == [ReasonCode.FORECAST, ReasonCode.WISH_TOO_NEW], "of the forecaster and of the scaler"


def test_a_writer_that_comes_back_marks_how_long_it_was_away(tmp_path: Path) -> None:
    made = decided(2)
    history = recorder(tmp_path)
    first = history.record(made[0])
    history.close()
    clock = Clock()
    clock.now_s = 5000.0
    again = recorder(tmp_path, clock=clock)
    again.record(made[1])
    found = list(entries(tmp_path))
    assert [e.number for e in found] == [1, 2, 3]
    assert found[1].gap == Gap(5010.0 - first.wall_ms / 1000, "the controller was down")
    assert found[1].cycle is None
    assert gaps(tmp_path) == []


def test_a_plan_that_takes_long_leaves_no_hole(tmp_path: Path) -> None:
    clock = Clock()
    history = recorder(tmp_path, clock=clock)
    first, second, third = decided(3)
    history.record(first)
    clock.now_s += 100.0  # it was observed in time, and recorded when its plan had been carried out
    history.record(second)
    assert gaps(tmp_path) == []
    clock.now_s += 100.0
    later = replace(third.snapshot, at_s=third.snapshot.at_s + 90.0)  # a later observation that was not recorded
    history.record(replace(third, snapshot=later))
    assert gaps(tmp_path) == ["nothing was recorded for 110.0 s before entry 3"]


def test_holes_that_are_not_marked_are_found(tmp_path: Path) -> None:
    clock = Clock()
    history = recorder(tmp_path, clock=clock)
    for cycle in decided(4):
        history.record(cycle)
    clock.now_s += 100.0
    history.record(decided(1)[0])
    assert gaps(tmp_path) == ["nothing was recorded for 110.0 s before entry 5"]
    (tmp_path / "cycle-0000000002.parquet").unlink()
    assert gaps(tmp_path)[0] == "entries 2 to 2 are missing"


def test_entries_are_merged_and_read_once(tmp_path: Path) -> None:
    history = recorder(tmp_path, together=4)
    written = [history.record(cycle) for cycle in decided(10)]
    assert [p.path.name for p in parts(tmp_path)] == [
        "cycles-0000000001-0000000004.parquet",
        "cycles-0000000005-0000000008.parquet",
        "cycle-0000000009.parquet",
        "cycle-0000000010.parquet",
    ]
    assert list(entries(tmp_path)) == written
    # As if the writer had died before it removed the single ones.
    whole = parts(tmp_path)[0]
    (tmp_path / "cycle-0000000003.parquet").write_bytes(files(tmp_path)[2].read_bytes())
    assert [e.number for e in entries(tmp_path)] == list(range(1, 11))
    (tmp_path / ".cycle-0000000011.parquet.77").write_bytes(b"half")
    history.close()
    recorder(tmp_path, together=4)
    assert not (tmp_path / "cycle-0000000003.parquet").exists() and whole.path.exists()
    assert not list(tmp_path.glob(".cycle*"))


def test_the_oldest_go_when_it_grows_too_large(tmp_path: Path) -> None:
    size = 0
    history = recorder(tmp_path / "a")
    history.record(decided(1)[0])
    size = files(tmp_path / "a")[0].stat().st_size
    bound = 6.5 * size / 1e6
    history = recorder(tmp_path / "b", most_mb=bound, together=3)
    for cycle in decided(30):
        history.record(cycle)
        assert sum(p.stat().st_size for p in files(tmp_path / "b")) <= bound * 1e6
    found = [e.number for e in entries(tmp_path / "b")]
    assert found == list(range(found[0], 31))
    assert 3 <= len(found) < 30


def test_it_is_read_whole_while_it_is_written(tmp_path: Path) -> None:
    made = decided(20)
    history = recorder(tmp_path, together=5)
    history.record(made[0])
    done = threading.Event()

    def write() -> None:
        for cycle in made[1:]:
            history.record(cycle)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    looks = 0
    while not done.is_set() or looks == 0:
        numbers = [e.number for e in entries(tmp_path)]
        assert numbers == list(range(1, len(numbers) + 1))
        looks += 1
    writer.join()
    assert len(list(entries(tmp_path))) == 20


def test_only_one_writes(tmp_path: Path) -> None:
    history = recorder(tmp_path)
    with pytest.raises(BadInput, match="another controller records into"):
        recorder(tmp_path)
    history.close()
    recorder(tmp_path)


def test_a_file_that_cannot_be_read_is_passed_over_and_missed(tmp_path: Path) -> None:
    history = recorder(tmp_path)
    for cycle in decided(3):
        history.record(cycle)
    (tmp_path / "cycle-0000000002.parquet").write_bytes(b"")
    assert [e.number for e in entries(tmp_path)] == [1, 3]
    assert gaps(tmp_path)[0] == "entries 2 to 2 are missing"


def test_changes_are_found_without_reading_the_rest(tmp_path: Path) -> None:
    made = decided(3)
    quiet = replace(made[1], plan=Plan(reasons=made[1].plan.reasons))
    history = recorder(tmp_path)
    for cycle in (made[0], quiet, made[2]):
        history.record(cycle)
    assert list(changes_since(tmp_path, "", 0)) == [made[0], made[2]]
    assert list(changes_since(tmp_path, "", made[1].snapshot.at_s)) == [made[2]]
    assert list(changes_since(tmp_path, "another", 0)) == []
    assert list(changes_since(tmp_path / "none", "", 0)) == []


def stamped(path: Path, metadata: dict[bytes, bytes] | None) -> None:
    """Write the file again with this metadata, as another version of Barograph would have."""
    table = pq.ParquetFile(path).read().replace_schema_metadata(metadata)  # type: ignore[no-untyped-call]
    pq.write_table(table, path)  # type: ignore[no-untyped-call]


OTHER_FORMATS = {
    "before formats had numbers": (None, "format 0"),
    "older": ({b"barograph.format": b"1"}, "format 1"),
    "the one before": ({b"barograph.format": str(FORMAT - 1).encode()}, f"format {FORMAT - 1}"),
    "newer": ({b"barograph.format": str(FORMAT + 1).encode()}, f"format {FORMAT + 1}"),
    "no number": ({b"barograph.format": b"new"}, "format new"),
}


@pytest.mark.parametrize("case", OTHER_FORMATS)
@pytest.mark.parametrize("together", [2, 100], ids=["in one file", "in single files"])
def test_a_history_of_another_format_is_refused_and_left_as_it_is(tmp_path: Path, case: str, together: int) -> None:
    metadata, words = OTHER_FORMATS[case]
    history = recorder(tmp_path, together=together)
    for cycle in decided(2):
        history.record(cycle)
    history.close()
    for path in files(tmp_path):
        stamped(path, metadata)
    before = {p: p.read_bytes() for p in files(tmp_path)}
    sentence = f"has {words}, and this version of Barograph reads only format {FORMAT}: read it with the version"
    for read in (lambda: list(entries(tmp_path)), lambda: gaps(tmp_path), lambda: recorder(tmp_path)):
        with pytest.raises(BadInput, match=sentence):
            read()
    assert {p: p.read_bytes() for p in files(tmp_path)} == before


def test_files_say_their_format(tmp_path: Path) -> None:
    history = recorder(tmp_path, together=2)
    for cycle in decided(3):
        history.record(cycle)
    schemas = [pq.read_schema(p.path) for p in parts(tmp_path)]  # type: ignore[no-untyped-call]
    assert [s.metadata[b"barograph.format"] for s in schemas] == [b"10", b"10"]
    assert FORMAT == 10


def test_no_history_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no history in"):
        list(entries(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        Recorder(tmp_path / "file", "adaptive", "act")


def test_a_writer_killed_at_any_moment_leaves_whole_entries(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.history.test_history import decided, recorder\n"
        "h = recorder(Path(sys.argv[1]), together=3); c = decided(1)[0]\n"
        "print('on', flush=True)\n"
        "while True: h.record(c)\n"
    )
    path = os.pathsep.join(str(p) for p in (Path(__file__).parents[2], Path(__file__).parents[2] / "src"))
    for _ in range(2):
        writer = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        before = max((p.last for p in parts(tmp_path)), default=0)
        while max((p.last for p in parts(tmp_path)), default=0) < before + 7:
            assert writer.poll() is None
        writer.kill()
        writer.wait()
        writer.stdout.close()
        numbers = [e.number for e in entries(tmp_path)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert sum(isinstance(e, Entry) and e.gap is not None for e in entries(tmp_path)) == 1


def test_an_entry_that_is_damaged_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    history = recorder(tmp_path, together=3)
    written = [history.record(cycle) for cycle in decided(3)]
    (part,) = parts(tmp_path)
    table = pq.ParquetFile(part.path).read()  # type: ignore[no-untyped-call]
    cycle = table.column("cycle").to_pylist()
    place = table.schema.get_field_index("cycle")
    for spoilt in (cycle[1][:-7], "[" * 100_000, '{"snapshot": 1}', "1"):
        again = table.set_column(place, "cycle", pa.array([cycle[0], spoilt, cycle[2]]))
        pq.write_table(again, part.path)  # type: ignore[no-untyped-call]
        caplog.clear()
        assert list(entries(tmp_path)) == [written[0], written[2]]
        assert [m.split(" is left out")[0] for m in caplog.messages] == [f"entry 2 of the history {tmp_path}"]


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        recorder(tmp_path / "history").record(decided(1)[0])
    finally:
        os.umask(before)
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in files(tmp_path / "history")} == {0o600}
