"""Queries without Spark: they run until they are told to end."""

import threading
from typing import Any, cast

from pyspark.sql.streaming.query import StreamingQuery


class FakeQuery:
    def __init__(self, id: str = "q", run: str = "run-1", name: str | None = None) -> None:  # noqa: A002  # Spark's name
        self.id, self.runId, self.name = id, run, name
        self.ended = threading.Event()
        self.error: Exception | None = None

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        return not self.ended.is_set()

    def exception(self) -> Exception | None:
        return self.error

    def end(self, error: Exception | None = None) -> None:
        self.error = error
        self.ended.set()

    def await_end(self) -> None:
        self.ended.wait()


def as_query(fake: FakeQuery) -> StreamingQuery:
    return cast("StreamingQuery", fake)


class Event:
    """Of a listener."""

    def __init__(self, id: str = "q", run: str = "run-1") -> None:  # noqa: A002  # Spark's name
        self.id, self.runId = id, run

    def __repr__(self) -> str:
        return f"{self.id}/{self.runId}"


def event(id: str = "q", run: str = "run-1") -> Any:  # noqa: A002  # Spark's name
    return Event(id, run)
