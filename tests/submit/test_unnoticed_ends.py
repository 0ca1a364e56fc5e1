"""A query that died while main waits for another is told of, without Spark."""

import threading

import pytest
from tests.polling import until
from tests.submit.fake_application import Application, Streams

from barograph.submit import jvm_program
from barograph.submit.jvm_deaths import unnoticed_ends
from barograph.submit.jvm_deaths.unnoticed_ends import UnnoticedEnds

LOST = "ExecutorLostFailure (executor 1 exited)"


class Watched:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.streams, self.ends = Streams(), UnnoticedEnds(self.said.append, lambda thrown: thrown.text)

    def look(self, call: int, *times_s: float) -> None:
        for now_s in times_s:
            self.ends.look(call, self.streams.active(), now_s)


def test_a_query_that_died_beside_the_one_that_main_waits_for_is_said_once() -> None:
    watched = Watched()
    watched.streams.start("q1")
    two = watched.streams.start("q2")
    watched.look(1, 0.0, 2.0)
    two.die(LOST)
    watched.look(1, 4.0, 6.0, 8.0)
    assert watched.said == []
    watched.look(1, 9.0, 11.0, 20.0)
    (said,) = watched.said
    assert said.startswith("the query q2 ended (lost an executor: ")
    assert said.endswith(") and main waits for another: wait with awaitAnyTermination, or it is not started again")


def test_a_query_without_a_name_is_called_as_elsewhere() -> None:
    watched = Watched()
    one = watched.streams.start(None)
    watched.look(1, 0.0)
    one.die(LOST)
    watched.look(1, 1.0, 7.0)
    assert watched.said[0].startswith("the query query-6e7b1f0e ended")


def test_nothing_is_said_of_a_query_that_was_stopped_or_that_main_started_again() -> None:
    watched = Watched()
    stopped, again = watched.streams.start("stopped"), watched.streams.start("again")
    watched.look(1, 0.0)
    stopped.stop()
    again.die(LOST)
    watched.look(1, 1.0)
    watched.streams.start("again")
    watched.look(1, 3.0, 10.0, 20.0)
    assert watched.said == []


def test_nothing_is_said_when_main_has_ended_or_was_called_again() -> None:
    watched = Watched()
    one = watched.streams.start("one")
    watched.look(1, 0.0)
    one.die(LOST)
    watched.look(1, 1.0)
    watched.look(0, 3.0)
    watched.streams.start("two").die(LOST)
    watched.look(2, 10.0, 20.0)
    assert watched.said == []


def test_the_program_looks_while_main_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_program, "_LOOK_S", 0.001)
    monkeypatch.setattr(jvm_program, "_QUERIES_S", 0.001)
    monkeypatch.setattr(unnoticed_ends, "PATIENCE_S", 0.0)
    looked = threading.Event()

    class Looked(Application):
        def _watch(self, *_: object) -> None:
            """There is nothing to steer."""

        def _session(self) -> object:
            looked.set()
            return super()._session()

    def main(application: Application) -> None:
        application.streams.start("q1")
        two = application.streams.start("q2")
        looked.clear()
        assert looked.wait(60.0)
        looked.clear()
        assert looked.wait(60.0)  # the first of the two may have begun before the query was there
        two.die(LOST)
        until(lambda: bool(application.said), look_s=0.01)

    application = Looked(main)
    watching = threading.Thread(target=application._attend, args=({}, lambda _: "adaptive", "act", lambda: None))
    watching.start()
    try:
        application._died_of()
        assert "main waits for another" in application.said[0]
    finally:
        application.close()
        watching.join(60.0)
    assert not watching.is_alive()
