"""Waiting for a condition: by looking again until a deadline, which is far away, because the machine may be busy."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], timeout_s: float = 120.0, look_s: float = 0.1) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(look_s)
