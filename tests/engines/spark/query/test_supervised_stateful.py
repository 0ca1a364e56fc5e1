"""Deaths, failed starts, requests, commits and ends in any order: one run at a time, no end without a cause, and a
query is given up exactly when it should be. On an engine without Spark."""

import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.engines.spark.query.fake_engine import CHECKPOINT, FakeEngine, FakeRun, FakeWriter, died
from tests.engines.spark.query.test_query_runs import UNREACHABLE

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.supervised_query import Supervised

pytestmark = pytest.mark.limit(300)  # hundreds of short waits, which take long beside other work
# Time never leads to giving up here: other tests are about that.
LIMITS = RestartLimits(same_failures=3, in_a_row=5, first_wait_s=0.001, longest_wait_s=0.002, keep_trying_s=1000.0)
SOON_S = 30.0
BUGS = ("a bug", "another bug")
TEXTS = {
    "a bug": "java.lang.ArithmeticException: / by zero",
    "another bug": "java.lang.NullPointerException",
    "an outage": "java.io.IOException: No space left on device",
    "a lost executor": "ExecutorLostFailure (executor 0 exited caused by one of the running tasks)",
    "another owner": "Caused by: org.apache.spark.barograph.lease.LeaseLost: the checkpoint c was taken over",
}
causes = st.sampled_from(tuple(TEXTS))


class Engine(FakeEngine):
    """epoch: of the present run; all before it are committed."""

    epoch = 0

    def present(self, topology: str) -> Any:
        found = super().present(topology)
        found.epoch = self.epoch
        return found


class OneAtATime(FakeWriter):
    """together: how often a run was started while another was active."""

    together = 0

    def start(self, *args: object, **options: object) -> Any:
        self.together += any(run.isActive for run in self._engine.runs)
        return super().start(*args, **options)


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.001)


class Queries(RuleBasedStateMachine):
    """deaths: those since the last commit. end: what must have ended the query; None while it runs."""

    @initialize()
    def start(self) -> None:
        self.engine = Engine()
        self.starts: list[Exception | None] = [None]
        self.writer = OneAtATime(self.engine, self.starts)
        self.build_error: Exception | None = None
        self.deaths: list[str] = []
        self.end: type[BaseException] | str | None = None
        self.query = Supervised(cast(SparkEngine, self.engine), self.build, CHECKPOINT, LIMITS)
        assert self.query.await_up(SOON_S)

    def build(self) -> FakeWriter:
        if self.build_error is not None:
            raise self.build_error
        return self.writer

    def run(self) -> FakeRun:
        return self.engine.runs[-1]

    def runs(self) -> bool:
        return hasattr(self, "query") and self.end is None

    @precondition(runs)
    @rule()
    def an_epoch_is_committed(self) -> None:
        self.engine.epoch += 1
        self.deaths = []

    @precondition(runs)
    @rule(cause=causes, refused=st.integers(0, 3), errors=st.integers(0, 2))
    def a_run_dies(self, cause: str, refused: int, errors: int) -> None:
        """The next start is refused so many times by a file system that is away, and the engine fails so often."""
        before = len(self.engine.runs)
        self.starts[:] = [UNREACHABLE] * refused + [None]
        self.engine.errors = [ValueError("an odd report")] * errors
        self.run().end_with(died(TEXTS[cause]))
        self.deaths.append(cause)
        if self.is_given_up():
            self.end = Exception
            until(lambda: not self.query.isActive, f"after {self.deaths} it should be given up")
            assert self.query.is_bug == (cause in BUGS)
            assert len(self.engine.runs) == before
        else:
            self.deaths += ["an outage"] * refused
            self.next_run(before + 1)

    def is_given_up(self) -> bool:
        last = self.deaths[-1]
        same = 0
        for cause in reversed(self.deaths):
            if cause == "an outage":
                continue
            if cause != last:
                break
            same += 1
        return last == "another owner" or (last in BUGS and same >= LIMITS.same_failures)

    def next_run(self, count: int) -> None:
        until(lambda: len(self.engine.runs) == count and self.query.doing == "running", f"after {self.deaths}")
        assert self.run().isActive and self.query.isActive and self.query.exception() is None
        assert self.query.await_up(SOON_S)

    @precondition(runs)
    @rule(held=st.booleans())
    def a_restart_is_asked_for(self, held: bool) -> None:
        before, done = len(self.engine.runs), []
        self.engine.held = lambda: held

        def between() -> str:
            done.append(any(run.isActive for run in self.engine.runs))
            return ""

        said = self.query.repartition(None, between)
        if held:
            assert (said, done) == ("", [False]), "it is done once, while no run is active"
            self.next_run(before + 1)
        else:
            assert (said, done) == ("its epoch did not end in time", [])
            assert len(self.engine.runs) == before and self.run().isActive

    @precondition(runs)
    @rule()
    def it_dies_while_a_restart_is_asked_for(self) -> None:
        """The request waits for the restart after the death, and is carried out then."""
        before = len(self.engine.runs)
        self.deaths.append("a lost executor")

        def held() -> bool:
            if len(self.engine.runs) > before:
                return True
            self.run().end_with(died(TEXTS["a lost executor"]))
            return False

        self.engine.held = held
        assert self.query.repartition(None) == ""
        self.next_run(before + 2)

    @precondition(runs)
    @rule()
    def the_function_that_builds_it_fails(self) -> None:
        self.build_error = KeyError("topic")
        self.run().end_with(died(TEXTS["a lost executor"]))
        # A writer may have been built ahead for the next run; the one after that fails.
        until(lambda: not self.query.isActive or self.run().isActive, "it neither ends nor goes on")
        if self.query.isActive:
            self.run().end_with(died(TEXTS["a lost executor"]))
        self.end = KeyError
        until(lambda: not self.query.isActive, "it should be given up")

    @precondition(runs)
    @rule()
    def the_application_ends(self) -> None:
        self.engine.alive = False
        self.end = OSError
        until(lambda: not self.query.isActive, "it should have ended")
        assert self.query.gave_up_because.startswith("the Spark application has ended")

    @precondition(runs)
    @rule(dying=st.booleans())
    def it_is_stopped(self, dying: bool) -> None:
        self.end = "stopped"
        if dying:
            self.run().end_with(died(TEXTS["a bug"]))
        self.query.stop()
        assert not any(run.isActive for run in self.engine.runs)

    @rule()
    def nothing_happens(self) -> None:
        """Also after the end: it stays as it is."""

    @invariant()
    def an_end_has_a_cause(self) -> None:
        if not hasattr(self, "query"):
            return
        if self.end is None:
            assert self.query.isActive and self.query.exception() is None
            assert self.query.awaitTermination(0.0) is False
            assert self.engine.restartable == {"counting"}
            assert self.engine.leases == [(CHECKPOINT, True)]
            return
        assert not self.query.isActive
        if self.end == "stopped":
            assert self.query.awaitTermination(SOON_S) is True and self.query.exception() is None
        else:
            with pytest.raises(cast(type[BaseException], self.end)) as raised:
                self.query.awaitTermination(SOON_S)
            assert self.query.exception() is raised.value
            assert self.query.gave_up_because
        assert self.engine.restartable == set()
        assert self.engine.leases == [(CHECKPOINT, True), (CHECKPOINT, False)]
        assert "is not running now" in self.query.repartition(None)

    @invariant()
    def one_run_at_a_time(self) -> None:
        if hasattr(self, "query"):
            assert self.writer.together == 0

    def teardown(self) -> None:
        if hasattr(self, "query"):
            self.query.stop()
            assert not [t for t in threading.enumerate() if t.name == "supervise-counting" and t.is_alive()]


TestQueries = Queries.TestCase
TestQueries.settings = settings(max_examples=8, stateful_step_count=12, deadline=None)


class ManyQueries(Queries):
    """More steps and more stories: eleven rules have many pairs."""


TestManyQueries = pytest.mark.slow(ManyQueries.TestCase)
TestManyQueries.settings = settings(max_examples=150, stateful_step_count=20, deadline=None)
