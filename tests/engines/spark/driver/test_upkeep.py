"""Upkeep goes on after an error, and ends with the application or when it is closed."""

import threading

import pytest

from barograph.engines.spark.driver.upkeep import RegularUpkeep


class FakeEngine:
    """fails: whether calls raise, as they do while Spark's gateway cannot be reached."""

    def __init__(self) -> None:
        self.calls = 0
        self.called = threading.Semaphore(0)
        self.fails = False
        self.alive = True

    def keep_up(self) -> None:
        self.calls += 1
        self.called.release()
        if self.fails:
            raise ConnectionResetError("no answer")

    def lives(self) -> bool:
        return self.alive


def called(engine: FakeEngine, times: int) -> bool:
    return all(engine.called.acquire(timeout=20) for _ in range(times))


def test_it_goes_on_after_errors_until_it_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    upkeep = RegularUpkeep(engine, every_s=0.001)
    assert called(engine, 2)
    engine.fails = True
    assert called(engine, 5)
    engine.fails = False
    assert called(engine, 5)
    upkeep.close()
    calls = engine.calls
    assert not upkeep._thread.is_alive()
    assert engine.calls == calls
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1


def test_it_ends_with_the_application() -> None:
    engine = FakeEngine()
    engine.fails, engine.alive = True, False
    upkeep = RegularUpkeep(engine, every_s=0.001)
    upkeep._thread.join(20)
    assert not upkeep._thread.is_alive()
    upkeep.close()
    assert engine.calls == 1
