"""``spark.streams`` of a program with kept queries: one query where Spark has its runs, and no end with the first."""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from barograph.submit.one_query_listener import OneQueryListener
from barograph.submit.own_queries import OwnQueries


def show_kept(queries: OwnQueries) -> None:
    """From now on ``spark.streams`` of this process knows these queries."""
    listeners: list[OneQueryListener] = []
    spark_active: Callable[[StreamingQueryManager], list[StreamingQuery]] = vars(StreamingQueryManager)["active"].fget

    def active(self: StreamingQueryManager) -> list[StreamingQuery]:
        kept = queries.kept()
        # One whose handle is still being made is Spark's own until then, and never missing.
        others = [query for query in spark_active(self) if str(query.id) not in kept]
        return [*kept.values(), *others]

    def get(original: Callable[..., Any], self: StreamingQueryManager, id: str) -> Any:  # noqa: A002  # Spark's name
        return queries.kept().get(str(id)) or original(self, id)

    def await_any(original: Callable[..., Any], self: StreamingQueryManager, timeout: float | None = None) -> Any:
        if timeout is not None and (not isinstance(timeout, int | float) or timeout < 0):
            return original(self, timeout)  # Spark's own error
        ended = queries.await_any(timeout)
        error = None if ended is None else ended.exception()
        if error is not None:
            raise error
        return None if timeout is None else ended is not None

    def reset(original: Callable[..., Any], self: StreamingQueryManager) -> None:
        queries.reset()
        original(self)

    def add(original: Callable[..., Any], self: StreamingQueryManager, listener: StreamingQueryListener) -> None:
        ours = OneQueryListener(listener, queries)
        original(self, ours)
        listeners.append(ours)
        queries.hear(ours)

    def remove(original: Callable[..., Any], self: StreamingQueryManager, listener: StreamingQueryListener) -> None:
        ours = next((one for one in listeners if one.theirs is listener), None)
        if ours is not None:
            listeners.remove(ours)
            queries.hear(ours, on=False)
        original(self, ours or listener)

    StreamingQueryManager.active = property(active)  # type: ignore[method-assign, assignment]
    changed: dict[str, Callable[..., Any]] = {
        "get": get, "awaitAnyTermination": await_any, "resetTerminated": reset, "addListener": add,
        "removeListener": remove,
    }  # fmt: skip
    for name, instead in changed.items():
        setattr(StreamingQueryManager, name, _around(getattr(StreamingQueryManager, name), instead))


def _around(original: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: StreamingQueryManager, *positional: Any, **named: Any) -> Any:
        return instead(original, self, *positional, **named)

    return call
