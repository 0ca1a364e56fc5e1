"""The waits between two calls are those of the options of restarts."""

import logging
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JError

from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.failures.patience import Patience
from barograph.engines.spark.tolerated import tolerated


def test_the_wait_begins_with_the_first_and_ends_with_the_longest() -> None:
    waits: list[float] = []
    answers: Iterator[OSError | str] = iter([OSError("no"), OSError("no"), OSError("no"), "yes"])

    def question() -> str:
        answer = next(answers)
        if isinstance(answer, str):
            return answer
        raise answer

    def stopping(seconds: float) -> bool:
        waits.append(seconds)
        return False

    limits = RestartLimits(first_wait_s=2.0, longest_wait_s=5.0)
    assert Patience(lambda: True, stopping, limits).ask(question) == "yes"
    assert waits == [2.0, 4.0, 5.0]


def test_what_is_tolerated_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("barograph.x")
    with caplog.at_level(logging.WARNING, "barograph"), tolerated(log, "words: its lease stays", Py4JError, OSError):
        raise OSError("no answer")
    assert caplog.messages == ["words: its lease stays: OSError: no answer"]
    with pytest.raises(ValueError, match="a bug"), tolerated(log, "words: its lease stays", OSError):
        raise ValueError("a bug")
