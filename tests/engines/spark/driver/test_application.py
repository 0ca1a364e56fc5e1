"""One supervisor for an application, without Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

from barograph.engines.spark.driver import application


def test_a_supervisor_that_could_not_be_served_is_closed_and_the_next_call_makes_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[SimpleNamespace] = []

    def supervisor(_spark: object) -> SimpleNamespace:
        closed: list[bool] = []

        def close() -> None:
            closed.append(True)
            raise ConnectionError("the master is away")

        made.append(SimpleNamespace(closed=closed, close=close))
        return made[-1]

    def serve(_supervisor: object) -> Any:
        if len(made) == 1:
            raise OSError(24, "Too many open files")
        return SimpleNamespace(close=lambda: None)

    session = SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app-1"))
    monkeypatch.setattr(application, "session_of", lambda: session)
    monkeypatch.setattr(application, "_present", None)
    monkeypatch.setattr(application, "Supervisor", supervisor)
    with pytest.raises(OSError, match="Too many open files"):
        application.supervisor_of_session(serve)
    assert made[0].closed == [True] and "the master is away" in caplog.text
    found: object = application.supervisor_of_session(serve)
    assert found is made[1] and not made[1].closed
    assert application.supervisor_of_session(serve) is found and len(made) == 2
