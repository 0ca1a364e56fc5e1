"""The queries of a program: which are kept, and waiting for the first that ends."""

import threading

from tests.polling import until
from tests.submit.fake_queries import FakeQuery, as_query

from barograph.submit.own_queries import OwnQueries


def test_a_kept_query_is_known_until_it_has_ended_for_good() -> None:
    queries, query = OwnQueries(), FakeQuery()
    queries.begin("q")
    assert queries.is_kept("q")
    assert queries.kept() == {}, "its handle is not made yet"
    queries.keep(as_query(query), query.await_end)
    assert list(queries.kept()) == ["q"]
    query.end()
    until(lambda: not queries.is_kept("q"))
    assert queries.kept() == {}


def test_waiting_ends_with_the_first_query_that_ends_and_not_before() -> None:
    queries, kept, plain = OwnQueries(), FakeQuery("kept"), FakeQuery("plain")
    queries.keep(as_query(kept), kept.await_end)
    queries.note(as_query(plain))
    assert queries.await_any(0.0) is None
    threading.Timer(0.05, plain.end).start()
    assert queries.await_any(None) is as_query(plain)
    assert queries.await_any(None) is as_query(plain), "until a reset"
    queries.reset()
    assert queries.await_any(0.01) is None
    kept.end()
    assert queries.await_any(None) is as_query(kept)


def test_a_start_that_fails_is_forgotten() -> None:
    queries = OwnQueries()
    queries.begin("q")
    queries.forget("q")
    assert not queries.is_kept("q")
