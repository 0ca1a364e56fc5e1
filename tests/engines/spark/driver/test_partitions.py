"""Which executors are avoided, for how long, and which runs are ended, with an engine that only notes orders."""

from collections.abc import Collection

import pytest

from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.driver.partitions import AGAIN_S, HOLD_S, Partitions, pairs_of, to_avoid
from barograph.engines.spark.query.failures.diagnosis import Cause, diagnose


class FakeNetwork:
    """cut: executor -> those it does not reach. runs: run -> the executor of each instance. An executor has 4 seats."""

    def __init__(self) -> None:
        self.cut: dict[str, list[str]] = {}
        self.runs: dict[str, tuple[str, ...]] = {}
        self.avoided: list[set[str]] = []
        self.ended: list[tuple[str, str]] = []

    def reports(self) -> dict[str, LastReport]:
        return {executor: LastReport(0.1, tuple(self.cut.get(executor, ()))) for executor in ("1", "2", "3")}

    def avoid(self, executors: Collection[str]) -> None:
        self.avoided.append(set(executors))

    def end_run(self, run: str, why: str) -> None:
        self.ended.append((run, why))

    def supervised_runs(self) -> dict[str, tuple[str, ...]]:
        return self.runs

    def seats_without(self, executors: Collection[str]) -> int:
        return 4 * len({"1", "2", "3"} - set(executors))

    def where(self, executor: str) -> str:
        return f"executor {executor}"


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_a_pair_counts_once_whichever_side_reports_it() -> None:
    assert pairs_of({"1": ["2"], "2": ["1", "3"]}) == {("1", "2"), ("2", "3")}


@pytest.mark.parametrize(
    ("pairs", "already", "used", "avoided"),
    [
        ({("1", "2")}, set(), {"1": 2, "2": 1}, ("2",)),  # the one with fewer instances
        ({("1", "2")}, {"1"}, {"1": 2, "2": 1}, ("1",)),  # no change of mind
        ({("1", "2"), ("2", "3")}, set(), {"2": 9}, ("2",)),  # one is enough
        ({("1", "2"), ("3", "4")}, set(), {}, ("1", "3")),
        (set(), {"1"}, {}, ()),
    ],
)
def test_few_executors_are_avoided(
    pairs: set[tuple[str, str]], already: set[str], used: dict[str, int], avoided: tuple[str, ...]
) -> None:
    assert sorted(to_avoid(pairs, already, used)) == sorted(avoided)


def test_a_query_on_both_sides_is_ended_once_and_one_side_is_avoided() -> None:
    network, clock = FakeNetwork(), Clock()
    partitions = Partitions(network, clock)
    network.runs = {"run-1": ("1", "1", "2", "3"), "run-2": ("1", "3")}
    partitions.judge(network.reports())
    assert (network.avoided, network.ended) == ([], []), "nothing is cut off"
    network.cut = {"2": ["1"]}
    partitions.judge(network.reports())
    partitions.judge(network.reports())
    assert network.avoided == [{"2"}]
    assert network.ended == [("run-1", "executor 1 and executor 2 do not reach each other")]
    network.runs = {"run-3": ("1", "1", "3", "3"), "run-2": ("1", "3")}
    partitions.judge(network.reports())
    assert len(network.ended) == 1, "the next run is on executors that reach each other"


def test_a_run_that_goes_on_after_it_was_ended_is_ended_again() -> None:
    """Between two epochs nothing runs that could be ended, and the next one may have its seats already."""
    network, clock = FakeNetwork(), Clock()
    partitions = Partitions(network, clock)
    network.runs, network.cut = {"run-1": ("1", "2")}, {"2": ["1"]}
    for clock.s in (0.0, 1.0, AGAIN_S - 1):
        partitions.judge(network.reports())
    assert len(network.ended) == 1, "an end takes a moment"
    clock.s = AGAIN_S
    partitions.judge(network.reports())
    assert [run for run, _ in network.ended] == ["run-1", "run-1"]


def test_what_the_engine_did_not_take_is_ordered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    network = FakeNetwork()
    partitions = Partitions(network, Clock())
    network.runs, network.cut = {"run-1": ("1", "2")}, {"2": ["1"]}
    with monkeypatch.context() as broken:
        broken.setattr(network, "avoid", fail)
        with pytest.raises(ConnectionError):
            partitions.judge(network.reports())
    with monkeypatch.context() as broken:
        broken.setattr(network, "end_run", fail)
        with pytest.raises(ConnectionError):
            partitions.judge(network.reports())
    partitions.judge(network.reports())
    assert (network.avoided, len(network.ended)) == ([{"1"}], 1)


def fail(*_: object) -> None:
    raise ConnectionError("no answer")


def test_an_executor_is_avoided_for_some_time_after_its_last_failure_and_longer_the_next_time() -> None:
    network, clock = FakeNetwork(), Clock()
    partitions = Partitions(network, clock)
    network.cut = {"1": ["2"], "2": ["1"]}
    partitions.judge(network.reports())
    network.cut, clock.s = {}, HOLD_S - 1
    partitions.judge(network.reports())
    assert network.avoided == [{"1"}]
    clock.s = HOLD_S
    partitions.judge(network.reports())
    assert network.avoided == [{"1"}, set()]
    network.cut = {"1": ["2"]}
    partitions.judge(network.reports())
    network.cut, clock.s = {}, 2.5 * HOLD_S
    partitions.judge(network.reports())
    assert network.avoided[-1] == {"1"}, "this time it takes twice as long"
    clock.s = 3 * HOLD_S
    partitions.judge(network.reports())
    assert network.avoided[-1] == set()


def test_a_query_that_needs_both_sides_is_left_to_wait_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    network = FakeNetwork()
    network.cut, network.runs = {"1": ["2"]}, {"run": ("1", "2", "3") * 3}
    partitions = Partitions(network, Clock())
    partitions.judge(network.reports())
    partitions.judge(network.reports())
    assert network.ended == []
    assert [r.message for r in caplog.records if "too few seats" in r.message] == [
        "executor 1 and executor 2 do not reach each other, and the other executors have too few seats: a query waits"
    ]


def test_a_run_that_was_ended_for_it_is_not_taken_for_a_bug() -> None:
    text = "Job 7 cancelled executor 1 and executor 2 do not reach each other"
    assert diagnose(text, 0.0, 4, ()).cause is Cause.LOST
