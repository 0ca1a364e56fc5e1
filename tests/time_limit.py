"""A pytest plugin: no test runs for ever. One that exceeds its limit fails and shows the stacks of all threads.

The limit holds for the setup, the call and the teardown of a test separately. An exception is raised where the main
thread is, so that ``with`` blocks and fixtures still clean up, and again if they take as long again. Where it is lost,
as in a finalizer, the test fails at its end. Code that never returns to the interpreter is not interrupted.
"""

import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from _pytest.outcomes import OutcomeException

UNIT_S, SPARK_S, SLOW_S = 60.0, 300.0, 1800.0
PYTEST = re.compile(r"/(_?pytest|pluggy)/|<frozen runpy>")  # calls of these files tell nothing about a test


class TimeLimitExceeded(OutcomeException):
    """Not an Exception, which code under test may catch; an outcome, after which pytest runs the other finalizers.

    Not pytest's own Failed either: hypothesis would run the test again to look for a smaller example.
    """


def pytest_configure(config: pytest.Config) -> None:
    kinds = f"{UNIT_S:g} s without it, spark {SPARK_S:g} s, slow {SLOW_S:g} s"
    config.addinivalue_line("markers", f"limit(seconds): longest setup, call or teardown of the test; {kinds}")


def limit_s(item: pytest.Item) -> float:
    """Of a test: what its nearest marker says, or the limit of its kind."""
    marker = item.get_closest_marker("limit")
    if marker is not None:
        match marker.args:
            case (int() | float() as seconds,) if seconds > 0 and not marker.kwargs:
                return float(seconds)
        raise pytest.UsageError(f"{item.nodeid}: write the limit as limit(seconds), with seconds above 0")
    if item.get_closest_marker("slow"):
        return SLOW_S
    return SPARK_S if item.get_closest_marker("spark") else UNIT_S


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with limited(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with limited(item, "teardown"):
        return (yield)


@contextmanager
def limited(item: pytest.Item, phase: str) -> Iterator[None]:
    if item.config.getoption("usepdb"):  # a person reads at the prompt, for as long as that takes
        yield
        return
    seconds, struck = limit_s(item), False
    sentence = f"the {phase} of this test exceeded its limit of {seconds:g} s"

    def strike(_signal: int, frame: FrameType | None) -> None:
        nonlocal struck
        struck = True
        item.add_report_section(phase, "stacks of all threads", stacks(frame))
        raise TimeLimitExceeded(sentence)

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if struck:
        raise TimeLimitExceeded(sentence)


def stacks(main: FrameType | None) -> str:
    """What every thread does now. main: where the main thread was interrupted."""
    frames = sys._current_frames()
    found = []
    for thread in threading.enumerate():
        frame = main if thread is threading.main_thread() else frames.get(thread.ident or 0)
        calls = [c for c in traceback.extract_stack(frame) if not PYTEST.search(c.filename)] if frame else []
        found.append(f"thread {thread.name}:\n{''.join(traceback.format_list(calls))}")
    return "\n".join(found)
