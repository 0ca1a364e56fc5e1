"""State is split over other instances, or left as it was; an unfinished repartition is repeated."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from pyspark.errors import IllegalArgumentException
from tests.engines.spark.query.fake_engine import CHECKPOINT, FakeEngine, died
from tests.engines.spark.query.test_query_runs import QUICK, UNREACHABLE, supervised, until

from barograph.engines.spark.query.repartition import TRIES, split_state

_T = TypeVar("_T")
PATIENT = replace(QUICK, keep_trying_s=1000.0)  # however slow the machine is
UNFINISHED = died("[STREAMING_UNFINISHED_REPARTITION_DETECTED] the state was being repartitioned to 4")


class Splitting:
    """Fails so many times; begun: whether the first failure left something unfinished."""

    def __init__(self, fails: int, begun: bool = True, undo: str = "") -> None:
        self.fails, self.begun, self.undo, self.did = fails, begun, undo, ""

    def repartition(self, checkpoint: str, count: int) -> str:
        assert (checkpoint, count) == ("there", 4)
        self.did += "r"
        self.fails -= 1
        return "" if self.fails < 0 else "an executor was lost"

    def unfinished_repartition(self, checkpoint: str) -> int:
        assert checkpoint == "there"
        return 4 if self.begun else 0

    def undo_repartition(self, checkpoint: str) -> str:
        assert checkpoint == "there"
        self.did += "u"
        return self.undo


def once(question: Callable[[], _T]) -> _T:
    return question()


CASES = {  # the engine, its calls, the result
    "at once": (Splitting(0), "r", ""),
    "after two failures": (Splitting(2), "rrr", ""),
    "never": (Splitting(99), "r" * TRIES + "u", "an executor was lost; the query goes on as it was"),
    "not even begun": (Splitting(99, begun=False), "ru", "an executor was lost; the query goes on as it was"),
    "nor undone": (Splitting(99, undo="disk full"), "r" * TRIES + "u", "lost; it could not be undone: disk full"),
}


@pytest.mark.parametrize("case", CASES)
def test_split(case: str) -> None:
    engine, did, said = CASES[case]
    why = split_state(engine, "there", 4, lambda _: False, once)
    assert engine.did == did
    assert why.endswith(said) and bool(why) == bool(said)


def test_a_query_that_is_stopped_does_not_wait() -> None:
    engine = Splitting(99)
    assert split_state(engine, "there", 4, lambda _: True, once).startswith("an executor was lost")
    assert engine.did == "ru"


class StateAway(FakeEngine):
    """The file system of the checkpoint cannot be read while ``away`` has errors; a repartition fails meanwhile."""

    away: list[Exception]
    split: tuple[str, int] | None = None

    def repartition(self, checkpoint: str, count: int) -> str:
        if self.away:
            return f"IOException: {self.away[0]}"
        self.split = checkpoint, count
        return ""

    def unfinished_repartition(self, checkpoint: str) -> int:
        assert checkpoint == CHECKPOINT
        if self.away:
            raise self.away.pop()
        return 4

    def undo_repartition(self, checkpoint: str) -> str:
        assert checkpoint == CHECKPOINT
        return ""


def away_for_a_moment() -> StateAway:
    engine = StateAway()
    engine.away = [UNREACHABLE, IllegalArgumentException("no such host"), OSError("no answer")]
    return engine


def test_a_file_system_that_is_away_after_a_failed_repartition_does_not_end_the_supervision() -> None:
    engine = away_for_a_moment()
    query = supervised(engine, limits=PATIENT)
    assert query.await_up(10.0)
    assert query.repartition(4) == ""
    assert (engine.split, engine.away) == ((CHECKPOINT, 4), [])
    assert query.isActive and [r.runId for r in engine.runs] == ["run-1", "run-2"]
    query.stop()


def test_nor_does_one_that_is_away_when_an_unfinished_repartition_is_found() -> None:
    engine = away_for_a_moment()
    query = supervised(engine, limits=PATIENT)
    engine.runs[0].end_with(UNFINISHED)
    until(lambda: len(query.restarts) == 1)
    assert (engine.split, engine.away) == ((CHECKPOINT, 4), [])
    assert query.isActive
    query.stop()
