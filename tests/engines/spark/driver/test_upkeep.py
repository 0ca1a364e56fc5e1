"""Upkeep goes on after an error, and ends with the application or when it is closed."""

import threading
from collections.abc import Mapping

import pytest
from pyspark.errors import IllegalArgumentException

from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.driver.upkeep import ExecutorWatch, RegularUpkeep

# PySpark raises errors of Java as types of its own, which Py4J does not know.
ERRORS = (ConnectionResetError("no answer"), ValueError("odd"), IllegalArgumentException("odd"))
each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
REPORTS = {"1": LastReport(0.2), "2": LastReport(0.1, ("1",))}


class FakeEngine:
    """fails: whether calls raise, as they do while Spark's gateway cannot be reached."""

    def __init__(self, error: Exception = ERRORS[0]) -> None:
        self.calls, self.error = 0, error
        self.called, self.failed = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = False
        self.alive = True

    def keep_up(self) -> None:
        self.calls += 1
        if self.fails:
            self.failed.release()
            raise self.error
        self.called.release()

    def lives(self) -> bool:
        return self.alive


def happened(what: threading.Semaphore, times: int) -> bool:
    return all(what.acquire(timeout=20) for _ in range(times))


@each_error
def test_it_goes_on_after_errors_until_it_is_closed(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine(error)
    upkeep = RegularUpkeep({"its work": engine}, every_s=0.001)
    assert happened(engine.called, 2)
    engine.fails = True
    assert happened(engine.failed, 5)
    engine.fails = False
    assert happened(engine.called, 5)
    upkeep.close()
    calls = engine.calls
    assert not upkeep._thread.is_alive()
    assert engine.calls == calls
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert warning.startswith(f"its work failed: {type(error).__name__}: ")


def test_it_ends_with_the_application() -> None:
    engine = FakeEngine()
    engine.fails, engine.alive = True, False
    upkeep = RegularUpkeep({"its work": engine}, every_s=0.001)
    upkeep._thread.join(20)
    assert not upkeep._thread.is_alive()
    upkeep.close()
    assert engine.calls == 1


def test_one_that_fails_does_not_keep_another_from_its_turn() -> None:
    broken, engine = FakeEngine(), FakeEngine()
    broken.fails = True
    upkeep = RegularUpkeep({"failing": broken, "working": engine}, every_s=0.001)
    assert happened(broken.failed, 3) and happened(engine.called, 3)
    upkeep.close()


class Reporting:
    asked = 0

    def lives(self) -> bool:
        return True

    def last_reports(self) -> dict[str, LastReport]:
        self.asked += 1
        return REPORTS


class Judge:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.seen: list[Mapping[str, LastReport]] = []

    def judge(self, reports: Mapping[str, LastReport]) -> None:
        self.seen.append(reports)
        if self.error is not None:
            raise self.error


def test_it_asks_once_for_all() -> None:
    engine, judges = Reporting(), (Judge(), Judge())
    ExecutorWatch(engine, *judges).keep_up()
    assert engine.asked == 1
    assert [judge.seen for judge in judges] == [[REPORTS], [REPORTS]]


@each_error
def test_all_judge_before_an_error_is_raised(error: Exception) -> None:
    broken, other = Judge(error), Judge()
    with pytest.raises(type(error)):
        ExecutorWatch(Reporting(), broken, other).keep_up()
    assert other.seen == [REPORTS]
