"""``spark.streams`` of a program with kept queries."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.query import StreamingQueryManager

from barograph.submit.own_queries import OwnQueries
from barograph.submit.streams import show_kept

NAMES = ("active", "get", "awaitAnyTermination", "resetTerminated", "addListener", "removeListener")


def test_a_query_is_active_also_while_its_handle_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:  # so that they are put back
        monkeypatch.setattr(StreamingQueryManager, name, getattr(StreamingQueryManager, name))
    run: Any = SimpleNamespace(id="one")
    runs = [run]
    monkeypatch.setattr(StreamingQueryManager, "active", property(lambda _: list(runs)))
    queries = OwnQueries()
    show_kept(queries)
    streams = StreamingQueryManager(None)  # nothing is asked of Spark
    assert streams.active == [run]
    queries.begin("one")
    assert streams.active == [run], "Spark's own, until there is a handle"
    handle: Any = SimpleNamespace(id="one", isActive=True, runId="r")
    ended = threading.Event()
    queries.keep(handle, ended.wait)
    assert streams.active == [handle]
    runs.clear()
    assert streams.active == [handle], "between two runs"
    ended.set()
