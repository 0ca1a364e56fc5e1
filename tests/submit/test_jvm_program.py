"""A submitted jar gets its policy also where the first attempt to attach it fails, without Spark."""

import threading
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from tests.polling import until

from barograph.engines.spark.driver.client import DriverFailed
from barograph.model import BadInput
from barograph.submit import jvm_program
from barograph.submit.jvm_program import JvmProgram


class Program(JvmProgram):
    """errors: of the attempts to steer it, one each; then it succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.said: list[str] = []
        self.errors, self.attempts, self.begun = list(errors), 0, threading.Event()
        self.session: SimpleNamespace | None = SimpleNamespace(sparkContext=lambda: self)
        self.stopped = False
        self._say, self._supervisor, self._closing = self.said.append, None, threading.Event()
        self._settings = {}

    def isStopped(self) -> bool:  # noqa: N802  # Spark's name
        return self.stopped

    def _session(self) -> SimpleNamespace | None:
        return self.session

    def _steer(self, *_: object) -> None:
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)

    def go(self) -> "Program":
        """Until nothing is tried any more."""
        self._watch({}, lambda _: "adaptive", "act", self.begun.set)
        return self


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_program, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(jvm_program, "_LONGEST_WAIT_S", 0.01)


def test_what_failed_is_tried_again_and_each_reason_is_said_once() -> None:
    away, full = DriverFailed("no descriptor is left"), OSError(28, "No space left on device")
    program = Program(away, away, full, full, full, Py4JError("an error of the JVM"), KeyError("x")).go()
    assert program.begun.is_set() and program.attempts == 8
    again = "; it is tried again until it succeeds"
    without = "the application runs without Barograph's policy: "
    assert program.said == [
        f"{without}DriverFailed: no descriptor is left{again}",
        f"{without}OSError: [Errno 28] No space left on device{again}",
        f"{without}Py4JError: an error of the JVM{again}",
        f"{without}KeyError: 'x'{again}",
        "the application runs with Barograph's policy now",
    ]


def test_nothing_is_said_of_an_attempt_that_succeeds_at_once() -> None:
    program = Program().go()
    assert program.begun.is_set() and program.attempts == 1 and program.said == []


def test_what_is_refused_is_said_and_not_tried_again() -> None:
    program = Program(OSError("away"), BadInput("there is no policy 'x'")).go()
    assert not program.begun.is_set() and program.attempts == 2
    assert program.said[1:] == ["the application runs without Barograph's policy: BadInput: there is no policy 'x'"]


def test_an_application_that_has_ended_is_left() -> None:
    ended = Program(Py4JNetworkError("the JVM is gone")).go()
    assert (ended.attempts, ended.said, ended.begun.is_set()) == (1, [], False)
    stopped = Program(ConnectionError("the endpoint is closed"))
    stopped.stopped = True
    assert (stopped.go().attempts, stopped.said) == (1, [])
    lives = Program(ConnectionError("the endpoint is closed")).go()
    assert lives.begun.is_set() and len(lives.said) == 2


def test_the_end_of_the_program_ends_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_program, "_FIRST_WAIT_S", 1e6)
    monkeypatch.setattr(jvm_program, "_LONGEST_WAIT_S", 1e6)
    program = Program(OSError("away"))
    watching = threading.Thread(target=program.go)
    watching.start()
    until(lambda: bool(program.said))
    program.close()
    watching.join(60.0)
    assert not watching.is_alive() and not program.begun.is_set()
