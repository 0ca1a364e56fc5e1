"""Supervision on an engine without Spark: every end has a cause, and an error while the application lives is no end."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, IllegalArgumentException
from tests.engines.spark.query.fake_engine import CHECKPOINT, STOPPED, FakeEngine, FakeRun, FakeWriter, died

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.query.start import first_size
from barograph.engines.spark.query.start.first_size import PLANNED, SizeChoice
from barograph.engines.spark.query.start.writer_ahead import WriterAhead
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import BadInput, Edge, Grouping, Operator, Snapshot, Topology

QUICK = RestartLimits(same_failures=3, in_a_row=5, first_wait_s=0.01, longest_wait_s=0.02, keep_trying_s=0.2)
KILLED = died("java.lang.RuntimeException: something in the query")


class JavaError(Py4JJavaError):  # type: ignore[misc]  # Py4J ships no types
    """As Py4J raises it, without a JVM."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)
        self.java_exception = SimpleNamespace()
        self.text = text

    def __str__(self) -> str:
        return f"An error occurred while calling o7.start.\n: {self.text}\n\tat org.apache.spark.Some.line(Some:1)"


UNREACHABLE = JavaError("java.net.ConnectException: Call to namenode:8020 failed: Connection refused")


def supervised(
    engine: FakeEngine, *starts: Exception | None, build: Callable[[], Any] | None = None,
    limits: RestartLimits = QUICK, size: SizeChoice = PLANNED,
) -> Supervised:  # fmt: skip
    """starts: what each start raises, the first one of all included."""
    writer = FakeWriter(engine, list(starts) or [None])
    return Supervised(cast(SparkEngine, engine), build or (lambda: writer), "/checkpoints/counting", limits, size)


def until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.005)


def ended_by(query: Supervised) -> Exception:
    """What awaitTermination raises; it must be what exception() says."""
    with pytest.raises(Exception) as raised:  # which one is what the tests are about
        query.awaitTermination(10.0)
    assert query.exception() is raised.value
    assert not query.isActive
    assert query.gave_up_because in "".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
    return raised.value


def test_a_java_exception_at_a_restart_is_retried_while_the_application_lives() -> None:
    engine = FakeEngine()
    patient = replace(QUICK, keep_trying_s=1000.0)  # however slow the machine is
    query = supervised(engine, None, UNREACHABLE, UNREACHABLE, UNREACHABLE, UNREACHABLE, None, limits=patient)
    engine.runs[0].end_with(KILLED)
    until(lambda: len(query.restarts) == 1)
    assert query.isActive and query.exception() is None
    assert [r.runId for r in engine.runs] == ["run-1", "run-2"]
    query.stop()
    assert query.awaitTermination(1.0) is True


def test_a_java_exception_that_does_not_pass_is_raised_in_the_end() -> None:
    engine = FakeEngine()
    began = time.monotonic()
    query = supervised(engine, None, UNREACHABLE)
    engine.runs[0].end_with(KILLED)
    assert ended_by(query) is UNREACHABLE
    assert "is not available" in query.gave_up_because and not query.is_bug
    assert time.monotonic() - began >= QUICK.keep_trying_s
    assert engine.restartable == set()


def test_an_error_in_the_programs_own_function_is_raised_at_once() -> None:
    engine = FakeEngine()
    writer, calls = FakeWriter(engine, [None]), []

    def build() -> FakeWriter:
        calls.append(1)
        if len(calls) > 1:
            raise KeyError("topic")
        return writer

    query = supervised(engine, build=build)
    engine.runs[0].end_with(KILLED)
    assert isinstance(ended_by(query), KeyError)
    assert query.is_bug
    assert query.gave_up_because == "a bug in the query: the function that builds it fails: KeyError: 'topic'"


def test_an_exit_in_the_programs_own_function_is_no_end_in_order() -> None:
    """In the thread that supervises, SystemExit ends nothing but that thread, and Python says nothing of it."""
    engine = FakeEngine()
    writer, calls = FakeWriter(engine, [None]), []

    def build() -> FakeWriter:
        calls.append(1)
        if len(calls) > 1:
            raise SystemExit(3)
        return writer

    query = supervised(engine, build=build)
    engine.runs[0].end_with(KILLED)
    assert isinstance(ended_by(query), RuntimeError)
    assert query.is_bug
    assert query.gave_up_because == (
        "a bug in the query: the function that builds it fails: RuntimeError: it raises SystemExit(3)"
    )


def test_a_query_that_spark_refuses_is_given_up_at_once() -> None:
    engine = FakeEngine()
    refused = AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] there is no such table")
    query = supervised(engine, None, refused)
    engine.runs[0].end_with(KILLED)
    assert ended_by(query) is refused
    assert query.is_bug


def test_the_end_of_the_application_is_raised() -> None:
    engine = FakeEngine()
    query = supervised(engine, None, Py4JNetworkError("the gateway is gone"))
    engine.alive = False
    assert isinstance(ended_by(query), ConnectionRefusedError)
    assert query.gave_up_because.startswith("the Spark application has ended: ")


def test_an_application_that_ends_during_a_restart_is_not_waited_for() -> None:
    engine = FakeEngine()

    class Dying(FakeWriter):
        def start(self, *args: object, **options: object) -> Any:
            if engine.runs:
                engine.alive = False
                raise Py4JNetworkError("the gateway is gone")
            return super().start(*args, **options)

    query = supervised(engine, build=lambda: Dying(engine, [None]))
    engine.runs[0].end_with(KILLED)
    assert isinstance(ended_by(query), Py4JNetworkError)


def test_an_error_of_the_engine_while_the_application_lives_does_not_end_the_supervision() -> None:
    engine = FakeEngine(errors=[JavaError("java.lang.NullPointerException"), ValueError("an odd report")])
    query = supervised(engine)
    assert query.await_up(10.0)
    assert query.isActive and query.exception() is None
    query.stop()


def test_an_error_of_the_engine_that_does_not_pass_stops_the_query_and_is_raised() -> None:
    """A query whose handle says that it has ended must not run on."""
    odd = ValueError("an odd report")
    engine = FakeEngine(errors=[odd] * 10_000)
    query = supervised(engine)
    assert ended_by(query) is odd
    assert query.gave_up_because == "its supervision failed: ValueError: an odd report"
    assert not engine.runs[0].isActive


NO_SEATS = died(
    "[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] Cannot run the pipelined stage group: it needs 202 concurrent task slots "
    "to run all its stages together, but only 8 are currently free. The stages of a pipelined group must"
)


@pytest.mark.parametrize(("grows", "runs"), [(False, 1), (True, 2)], ids=["local", "executors may come"])
def test_a_query_that_can_never_fit_is_refused_in_one_sentence(
    grows: bool, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_size, "SETTLED_S", 0.05)
    engine = FakeEngine(comes_up=False, grows=grows)
    query = supervised(engine, limits=replace(QUICK, patience_s=0.05))
    for number in range(runs):
        until(lambda: len(engine.runs) > number)  # noqa: B023  # at once
        engine.runs[number].end_with(NO_SEATS)
    error = ended_by(query)
    assert isinstance(error, BadInput)
    assert str(error) == (
        "the query counting was not started: it needs 202 seats, one for each instance, and the application has 8: "
        "give the application more executors or cores; a source has an instance for each partition of its input, and a "
        "stateful operator as many as its checkpoint began with"
    )
    assert len(engine.runs) == runs


def test_a_query_whose_executors_all_end_as_they_start_is_refused_though_spark_waits_for_them() -> None:
    """Such an executor is known to Spark for a moment, in which Spark accepts the query and waits for its tasks."""
    missing = "ClassNotFoundException: org.apache.spark.barograph.BarographPlugin"
    engine = FakeEngine(comes_up=False, grows=True, seats=0, ends_at_start=missing)
    error = ended_by(supervised(engine, limits=replace(QUICK, patience_s=0.05)))
    assert isinstance(error, BadInput)
    assert "the application has 0: executors end as they start" in str(error)
    assert "they do not have barograph-plugin.jar" in str(error)
    assert not any(run.isActive for run in engine.runs)


def counting(partitions: int, sources: int = 2) -> Topology:
    operators = (Operator("source", sources, source=True), Operator("aggregate", partitions, stateful=True))
    return Topology("counting", operators, (Edge("source", "aggregate", Grouping.FIELDS),))


def test_a_query_that_does_not_fit_is_started_smaller_before_its_first_epoch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine = FakeEngine(comes_up=False, shape=counting(200))
    query = supervised(engine)
    engine.runs[0].end_with(NO_SEATS)
    until(lambda: len(engine.runs) == 2)
    assert engine.started_with == ["200", "2"]
    assert engine.conf["spark.sql.shuffle.partitions"] == "200", "it holds for this query only"
    assert engine.smaller == [({"source": 2, "aggregate": 2}, {"source": 2, "aggregate": 2})]
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "barograph: counting has 202 instances and 8 seats are free: it starts with source 2, aggregate 2, and "
        "spark.sql.shuffle.partitions=2 stays in its checkpoint (set spark.sql.shuffle.partitions or give the "
        "application more seats to choose yourself)"
    )
    engine.comes_up = True
    assert query.await_up(10.0)
    assert query.restarts == (), "nothing had run"
    query.stop()


def splitting(partitions: int, state: int) -> Topology:
    """As ``repartition(200)`` before a count whose checkpoint has so many parts."""
    operators = (
        Operator("source", 1, source=True), Operator("split", partitions), Operator("count", state, stateful=True),
    )  # fmt: skip
    edges = (Edge("source", "split"), Edge("split", "count", Grouping.FIELDS))
    return Topology("counting", operators, edges)


def test_after_a_restart_of_the_driver_operators_without_state_get_fewer_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The number of a stateful operator is in the checkpoint; that of others was in the ended driver's memory only."""
    engine = FakeEngine(comes_up=False, shape=splitting(200, 2), epoch=7)
    query = supervised(engine)
    engine.runs[0].end_with(NO_SEATS)
    until(lambda: len(engine.runs) == 2)
    assert engine.smaller == [({"source": 1, "split": 200, "count": 2}, {"source": 1, "split": 1, "count": 2})]
    assert engine.started_with == ["200", "200"], "the checkpoint has the number of the stateful one"
    assert "it starts with source 1, split 1, count 2 (set" in capsys.readouterr().err
    engine.comes_up = True
    assert query.await_up(10.0)
    query.stop()


def test_after_a_restart_of_the_driver_state_that_does_not_fit_is_refused() -> None:
    engine = FakeEngine(comes_up=False, shape=splitting(193, 8), epoch=7)
    query = supervised(engine)
    engine.runs[0].end_with(NO_SEATS)
    assert "needs 202 seats" in str(ended_by(query))
    assert engine.smaller == []


def test_what_is_declared_and_the_policy_decide_on_the_first_size(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[dict[str, int], int]] = []

    def at_most_one(topology: Topology, seen: Snapshot) -> dict[str, int] | None:
        found = {o.name: o.parallelism for o in topology.operators}
        asked.append((found, len(seen.workers)))
        return found if found["count"] == 1 else None

    engine = FakeEngine(comes_up=False, shape=splitting(100, 100))
    declared = QueryOptions(instances="split=1..2").of
    query = supervised(engine, size=SizeChoice(declared, "modest", at_most_one))
    engine.runs[0].end_with(NO_SEATS)
    until(lambda: len(engine.runs) == 2)
    assert asked == [({"source": 1, "split": 1, "count": 2}, 1), ({"source": 1, "split": 1, "count": 1}, 1)]
    assert engine.smaller == [({"source": 1, "split": 2, "count": 1}, {"source": 1, "split": 1, "count": 1})]
    said = capsys.readouterr().err
    assert "it starts with source 1, split 1, count 1, as modest places them, and spark.sql" in said
    assert said.count("\n") == 1
    query.stop()


def test_a_query_is_made_smaller_once() -> None:
    engine = FakeEngine(comes_up=False, shape=counting(200))
    query = supervised(engine)
    engine.runs[0].end_with(NO_SEATS)
    until(lambda: len(engine.runs) == 2)
    engine.runs[1].end_with(NO_SEATS)
    assert "needs 202 seats" in str(ended_by(query))
    assert len(engine.smaller) == 1


def test_a_query_whose_sources_do_not_fit_is_refused() -> None:
    engine = FakeEngine(comes_up=False, shape=counting(200, sources=8))
    query = supervised(engine)
    engine.runs[0].end_with(NO_SEATS)
    assert "needs 202 seats" in str(ended_by(query))
    assert engine.smaller == []


def test_a_query_that_has_run_waits_for_its_seats() -> None:
    """A node was lost, and will be back."""
    engine = FakeEngine()
    query = supervised(engine, limits=replace(QUICK, patience_s=0.05))
    assert query.await_up(10.0)
    engine.runs[0].end_with(NO_SEATS)
    until(lambda: len(query.restarts) == 1)
    assert query.restarts[0].cause == "too few seats for all instances: it needs 202 and 8 are free"
    query.stop()


def test_a_stopped_query_ends_in_order() -> None:
    engine = FakeEngine()
    query = supervised(engine)
    query.stop()
    assert (query.awaitTermination(1.0), query.exception(), query.isActive) == (True, None, False)


@pytest.mark.parametrize("by_its_handle", [True, False])
def test_an_end_that_its_handle_did_not_ask_for_is_said(by_its_handle: bool, caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)
    query.stop() if by_its_handle else engine.runs[0].end_with(STOPPED)
    assert query.awaitTermination(10.0) is True
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [s.startswith("counting was stopped past its handle") for s in said] == ([] if by_its_handle else [True])


def test_a_run_that_another_start_on_its_checkpoint_has_stopped_is_no_end_in_order() -> None:
    """Spark stops it, as it would for the program, and the other one goes on with its checkpoint."""
    engine = FakeEngine(next_run="run-9")
    query = supervised(engine)
    assert query.await_up(10.0)
    engine.runs[0].end_with(STOPPED)
    error = ended_by(query)
    assert isinstance(error, BadInput) and not query.is_bug
    assert str(error) == (
        "the query counting was ended: the checkpoint /checkpoints/counting was taken over by another start in this "
        "driver, its run run-9: a query that is kept must not be started by a plain start() too"
    )
    assert len(engine.runs) == 1, "the two would stop each other in turn"


def fail(*_: object) -> None:
    raise IllegalArgumentException("no such path")


@pytest.mark.parametrize(
    ("of", "name"), [(FakeEngine, "keep_lease"), (FakeEngine, "set_restartable"), (WriterAhead, "close")],
    ids=lambda part: part if isinstance(part, str) else "",
)  # fmt: skip
def test_an_end_comes_whatever_fails_at_it(monkeypatch: pytest.MonkeyPatch, of: type, name: str) -> None:
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)
    with monkeypatch.context() as patch:
        patch.setattr(of, name, fail)
        engine.runs[0].end_with(STOPPED)
        assert query.awaitTermination(10.0) is True
    assert not query.isActive
    assert (engine.leases[-1] == (CHECKPOINT, False)) is (name != "keep_lease"), "the others are done all the same"


def no_thread(thread: threading.Thread) -> None:
    assert thread.name == "supervise-counting"
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("of", "name", "failing", "error"),
    [
        (FakeEngine, "keep_lease", fail, IllegalArgumentException),
        (FakeEngine, "set_restartable", fail, IllegalArgumentException),
        (threading.Thread, "start", no_thread, RuntimeError),
    ],
    ids=["the lease", "the registration", "the thread"],
)
def test_a_start_that_fails_halfway_leaves_no_query(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str, failing: Callable[..., None], error: type[Exception]
) -> None:
    """The program has no handle of it, and nothing would supervise it."""
    engine = FakeEngine()
    with monkeypatch.context() as patch:
        patch.setattr(of, name, failing)
        with pytest.raises(error):
            supervised(engine)
    (run,) = engine.runs
    assert not run.isActive
    assert engine.restartable == set()
    assert [kept for _, kept in engine.leases][-1:] == ([] if name == "keep_lease" else [False])


def test_a_plan_that_has_seen_a_start_that_then_fails_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, seen = FakeEngine(), list[Any]()
    monkeypatch.setattr(engine, "set_restartable", lambda _name, query: seen.append(query))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError):
            supervised(engine)
    assert seen[-1] is None
    assert seen[0].repartition(None) == "it is not running now: stopped"


def test_a_run_of_which_nothing_is_known_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()

    def unknown(run: FakeRun) -> str:
        raise JavaError(f"java.io.IOException: no answer from {run.name}")

    with monkeypatch.context() as patch:
        patch.setattr(FakeRun, "runId", property(unknown, lambda _run, _id: None), raising=False)
        with pytest.raises(JavaError):
            supervised(engine)
    assert [run.isActive for run in engine.runs] == [False]


def test_a_requested_restart_waits_for_a_query_that_dies_while_its_epoch_is_being_ended() -> None:
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)
    done: list[str] = []

    def dies_once() -> bool:
        if len(engine.runs) == 1:
            engine.runs[0].end_with(KILLED)
            return False
        return True

    engine.held = dies_once

    def between() -> str:
        done.append(engine.runs[-1].runId)
        return ""

    assert query.repartition(None, between) == ""
    assert done == ["run-2"], "it is done once, with the run after the death"
    assert [r.runId for r in engine.runs] == ["run-1", "run-2", "run-3"]
    query.stop()


def test_a_requested_restart_of_a_query_that_has_ended_says_so() -> None:
    engine = FakeEngine()
    query = supervised(engine)
    query.stop()
    assert query.repartition(None) == "it is not running now: stopped"


def test_an_epoch_that_does_not_end_is_said_and_the_query_runs_on() -> None:
    engine = FakeEngine(held=lambda: False)
    query = supervised(engine)
    assert query.await_up(10.0)
    assert query.repartition(None) == "its epoch did not end in time"
    assert engine.runs[0].isActive
    query.stop()


def test_a_query_that_is_held_and_cannot_be_stopped_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would stand still for as long as it is held."""
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)
    with monkeypatch.context() as patch:

        def fail() -> None:
            raise JavaError("java.util.concurrent.TimeoutException: the query does not stop")

        patch.setattr(engine.runs[0], "stop", fail)
        with pytest.raises(JavaError):
            query.repartition(None)
    assert engine.let_go == ["counting"]
    assert query.repartition(None) == ""
    assert engine.let_go == ["counting"], "a query that was stopped is not held any more"
    query.stop()


@pytest.mark.parametrize(
    "error", [JavaError("java.util.concurrent.TimeoutException: the query does not stop"), KeyboardInterrupt()]
)
def test_a_query_whose_stop_fails_and_then_stops_all_the_same_is_started_again(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """It was not its program that stopped it, also where that is interrupted meanwhile and goes on."""
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)

    def fail_late() -> None:
        engine.runs[0].end_with(STOPPED)
        raise error

    monkeypatch.setattr(engine.runs[0], "stop", fail_late)
    with pytest.raises(type(error)):
        query.repartition(None)
    until(lambda: len(query.restarts) == 1)
    assert query.isActive and "stopped for a restart, and that failed" in query.restarts[0].cause
    query.stop()
    assert query.awaitTermination(1.0) is True


def test_a_query_that_is_stopped_for_a_request_in_the_moment_it_is_up_again_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a restart it is seen to be up, what was lost is counted, and only then it is followed: a request that comes
    in between stops it, and its supervision must not take that for an end in order."""
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)
    said: list[str] = []
    epochs = engine.epochs

    def ask_and_wait(topology: str) -> list[Any]:
        """Called while what was lost is counted."""
        if len(engine.runs) == 2 and not said:
            said.append("asked")
            threading.Thread(target=lambda: said.append(query.repartition(None)), daemon=True).start()
            until(lambda: not engine.runs[1].isActive)
        return epochs(topology)

    monkeypatch.setattr(engine, "epochs", ask_and_wait)
    engine.runs[0].end_with(KILLED)
    until(lambda: len(said) == 2)
    assert said == ["asked", ""]
    assert [r.runId for r in engine.runs] == ["run-1", "run-2", "run-3"]
    assert query.isActive
    query.stop()


@pytest.mark.parametrize(
    "error",
    [JavaError("java.lang.IllegalStateException: no executor"), ValueError("odd"), IllegalArgumentException("odd")],
    ids=lambda e: type(e).__name__,
)
def test_work_between_two_runs_that_fails_is_a_problem_and_no_end(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """PySpark raises errors of Java as types of its own, which Py4J does not know."""
    engine = FakeEngine()
    query = supervised(engine)
    assert query.await_up(10.0)

    def between() -> str:
        raise error

    assert str(error) in query.repartition(None, between)
    assert query.isActive and [r.runId for r in engine.runs] == ["run-1", "run-2"]
    assert any(type(error).__name__ in r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    query.stop()


def test_deaths_restarts_and_the_end_of_supervision_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    with caplog.at_level(logging.INFO, "barograph.engines.spark.query"):
        query = supervised(engine, limits=replace(QUICK, same_failures=2, in_a_row=2, keep_trying_s=0.0))
        engine.runs[0].end_with(KILLED)
        until(lambda: len(query.restarts) == 1)
        engine.runs[1].end_with(KILLED)
        ended_by(query)
    (restart,) = query.restarts
    told = [(r.levelname, r.getMessage()) for r in caplog.records]
    assert told[0] == ("WARNING", f"{query.topology} has died: {restart.cause}; death 1 since its last commit")
    assert told[1] == ("INFO", f"{query.topology} runs again {restart.told()}")
    assert told[-1] == ("ERROR", f"{query.topology} is supervised no more: {query.gave_up_because}")
