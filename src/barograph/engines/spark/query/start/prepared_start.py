"""A writer with the call that starts it, where a query is not started by a plain ``start()``; and starts that are ours.

A program that runs under ``barograph submit`` gets kept queries from ``DataStreamWriter.start``. The supervisor starts
runs of a query by the same method and must get Spark's own query from it.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

_inside = threading.local()


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """Takes the place of a DataStreamWriter in what a ``build`` function returns. named: the arguments by name of the
    start itself, options of the query among them."""

    writer: DataStreamWriter
    begin: Callable[[DataStreamWriter], StreamingQuery]
    named: Mapping[str, object] = field(default_factory=dict)

    def option(self, key: str, value: str) -> "PreparedStart":
        self.writer.option(key, value)
        return self

    def start(self) -> StreamingQuery:
        return self.begin(self.writer)


@contextmanager
def starting_a_run() -> Iterator[None]:
    """In this thread, a query that is started within is a run of a supervised one."""
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


def is_starting_a_run() -> bool:
    return bool(getattr(_inside, "depth", 0))
