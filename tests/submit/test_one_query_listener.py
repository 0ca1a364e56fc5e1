"""A listener sees one query, however many runs it has."""

from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener
from tests.polling import until
from tests.submit.fake_queries import FakeQuery, as_query, event

from barograph.submit.one_query_listener import OneQueryListener
from barograph.submit.own_queries import OwnQueries


class Seen(StreamingQueryListener):
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        self.events.append(("started", str(event)))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        self.events.append(("progress", str(event)))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        self.events.append(("terminated", str(event)))


def listening() -> tuple[OwnQueries, FakeQuery, Seen, OneQueryListener]:
    """A kept query in its first run."""
    queries, query, seen = OwnQueries(), FakeQuery(), Seen()
    listener = OneQueryListener(seen, queries)
    queries.hear(listener)
    listener.onQueryStarted(event())  # comes before the query is known as a kept one
    queries.begin("q")
    queries.keep(as_query(query), query.await_end)
    return queries, query, seen, listener


def test_runs_of_a_kept_query_are_one_query() -> None:
    _, query, seen, listener = listening()
    listener.onQueryProgress(event())
    listener.onQueryTerminated(event())
    listener.onQueryStarted(event(run="run-2"))
    query.runId = "run-2"
    listener.onQueryProgress(event(run="run-2"))
    listener.onQueryTerminated(event(run="run-2"))
    assert seen.events == [("started", "q/run-1"), ("progress", "q/run-1"), ("progress", "q/run-2")]
    query.end()
    until(lambda: seen.events[3:] == [("terminated", "q/run-2")])


def test_an_end_that_spark_reports_late_is_reported_once() -> None:
    """The first run's end is held when the query is stopped; that of the last run is still on its way."""
    queries, query, seen, listener = listening()
    listener.onQueryTerminated(event())
    query.runId = "run-2"
    query.end()
    until(lambda: not queries.is_kept("q"))
    assert seen.events == [("started", "q/run-1")]
    listener.onQueryTerminated(event(run="run-2"))
    assert seen.events[1:] == [("terminated", "q/run-2")]


def test_other_queries_are_reported_as_they_are() -> None:
    _, query, seen, listener = listening()
    listener.onQueryStarted(event("other"))
    listener.onQueryTerminated(event("other"))
    assert seen.events[1:] == [("started", "other/run-1"), ("terminated", "other/run-1")]
    query.end()


def test_a_query_that_is_started_anew_after_its_end_is_reported_again() -> None:
    queries, query, seen, listener = listening()
    query.end()
    until(lambda: not queries.is_kept("q"))
    listener.onQueryTerminated(event())
    listener.onQueryStarted(event(run="run-9"))
    assert seen.events[1:] == [("terminated", "q/run-1"), ("started", "q/run-9")]
