"""The keeper of a controller goes on whatever fails while it starts the next one."""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException

from barograph.control.heartbeat import ControllerKeeper

FOR_LONG = ["sleep", "600"]


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.01)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def test_a_controller_whose_program_is_away_for_a_while_is_started_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "controller"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    with ControllerKeeper([str(program)], tmp_path / "beat") as keeper:
        first = keeper.process
        away = program.rename(tmp_path / "away")
        first.kill()
        wait_until(lambda: any("cannot be started: FileNotFoundError" in text for text in warnings(caplog)))
        away.rename(program)
        wait_until(lambda: keeper.process is not first)
        assert keeper.process.poll() is None
        assert keeper.said == ["the controller ended with code -9"], "its end is told once"


@pytest.mark.parametrize(
    "error",
    [BlockingIOError("no process is left"), ValueError("odd"), IllegalArgumentException("odd")],
    ids=lambda e: type(e).__name__,
)
def test_no_error_of_a_start_ends_the_keeper(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with ControllerKeeper(FOR_LONG, tmp_path / "beat") as keeper:
        first, failures = keeper.process, [error, error]
        start = subprocess.Popen

        def fail_twice(*args: Any, **options: Any) -> Any:
            if failures:
                raise failures.pop()
            return start(*args, **options)

        monkeypatch.setattr(subprocess, "Popen", fail_twice)
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: keeper.process is not first)
        assert keeper.process.poll() is None
    said = [text for text in warnings(caplog) if "cannot be started" in text]
    assert len(said) == 1 and type(error).__name__ in said[0], "an error that repeats is one warning"
