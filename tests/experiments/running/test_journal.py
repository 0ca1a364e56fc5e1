"""The next driver reads what a driver recorded, also when that was killed in the middle of a line."""

from pathlib import Path

from barograph.engines.latency import Histogram
from barograph.experiments.report import ActionReport
from barograph.experiments.running.journal import DRIVER_KILLED, MOST_OUTPUT, Journal
from barograph.experiments.steering.first_placement import First
from barograph.model import Instance, Placement, Plan, Slot

MOVED = ActionReport(5.0, "move a/0=node-1", True, "", 0.5, None, ("moved",), moves=1)
KILLED = ActionReport(9.0, "kill driver", True, "", None, None, ("killed",))
SPLIT = Instance("wordcount", "split", 0)
PLACEMENT = Placement({SPLIT: Slot("node-2")})
FIRST = First("liu", {"split": 3}, Placement({SPLIT: Slot("node-1")}), Plan(shares_pct={SPLIT: 20.0}), ("said",))


def test_a_new_driver_continues_the_run(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = Journal(path)
    assert not first.earlier.begun
    first.begin(1_000_000, FIRST)
    first.ordered({"split": 4}, PLACEMENT)
    first.acted(MOVED, (5.0, 5.5))
    first.saw({100_100: 7, 100_200: 3}, {"due": Histogram.of([5] * 10)}, 900, 1_001_500)
    first.saw({100_100: 7, 100_200: 5, 100_300: 1}, {"due": Histogram.of([5] * 13)}, 1000, 1_001_500)
    # An executor was lost just before.
    first.saw({100_100: 7, 100_200: 5, 100_300: 1}, {"due": Histogram.of([5] * 13)}, 600, None)
    with path.open("a") as file:
        file.write('{"kind": "saw", "outp')
        file.write("\n")
    Journal(path).killed(1_009_000, KILLED, 9.0)

    second = Journal(path)
    earlier = second.earlier
    assert (earlier.start_ms, earlier.parallelism, earlier.placement) == (1_000_000, {"split": 4}, PLACEMENT)
    assert earlier.first == FIRST
    assert earlier.done == {(5.0, "move a/0=node-1"), (9.0, "kill driver")}
    assert earlier.output == {100_100: 7, 100_200: 5, 100_300: 1}
    second.driver_is_up(committed_rows=600, now_ms=1_016_000)
    (restart,) = earlier.restarts
    assert (restart.at_s, restart.cause, restart.down_s) == (9.0, DRIVER_KILLED, 7.0)
    assert restart.rows_replayed == 400
    assert restart.rows_repeated == 6  # what had left since the open epoch was planned
    second.saw({100_300: 1, 101_700: 2}, {"due": Histogram.of([900, 7, 7])}, 1200, 1_016_000)
    assert second.output == {100_100: 7, 100_200: 5, 100_300: 2, 101_700: 2}
    assert second.latency["due"] == Histogram.of([5] * 13 + [900, 7, 7])
    assert second.latency["read"].count == 0
    assert [report for report, _ in second.actions()] == [MOVED, KILLED]

    third = Journal(path)
    assert third.earlier.restarts == [restart]
    assert third.earlier.epochs == 2


def test_without_a_file_it_only_remembers() -> None:
    journal = Journal()
    journal.begin(5, FIRST)
    journal.acted(MOVED, (1.0, 2.0))
    journal.saw({1: 1}, {}, 1, None)
    journal.driver_is_up(0, 0)
    assert journal.actions() == [(MOVED, (1.0, 2.0))]
    assert journal.output == {1: 1}
    assert journal.earlier.restarts == []


def test_a_driver_that_was_killed_before_any_order_leaves_the_first_placement(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.begin(5, FIRST)
    earlier = Journal(tmp_path / "journal").earlier
    assert (earlier.parallelism, earlier.placement) == ({}, FIRST.placement)


def test_an_order_is_written_when_it_changes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for placement in (PLACEMENT, PLACEMENT, FIRST.placement):
        journal.ordered({}, placement)
    assert (tmp_path / "journal").read_text().count("ordered") == 2
    assert Journal(tmp_path / "journal").earlier.placement == FIRST.placement


def test_output_of_the_last_day_is_kept_and_all_of_it_is_counted(tmp_path: Path) -> None:
    """Each of two drivers runs for two days, with a row every ten minutes, and a third one continues."""
    path, start, every, count = tmp_path / "journal", 200_000_000, 60_000, 288
    for driver in range(2):
        journal = Journal(path)
        for number in range(count):
            journal.saw({start + (driver * count + number) * every: 1}, {}, 0, None)
        if driver == 0:
            journal.left(1_000_000)
    third = Journal(path)
    last = start + (2 * count - 1) * every
    for output in (third.earlier.output, third.output):
        assert max(output) == last
        assert MOST_OUTPUT // every <= len(output) <= MOST_OUTPUT // every + 2
    assert third.rows_out == 2 * count
    third.saw({last: 3, last + every: 5}, {}, 0, None)
    assert third.output[last] == 1 + 3
    assert max(third.output) - min(third.output) <= MOST_OUTPUT + every
    assert third.rows_out == 2 * count + 3 + 5
