"""``DataStreamWriter.start`` and ``toTable`` of a program: a real-time query with a checkpoint becomes a kept one.

Any other query runs as Spark runs it, and one line says why it is not kept.
"""

import functools
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart, is_starting_a_run
from barograph.engines.spark.query.start.writer_ahead import Build
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.submit.noted_writers import WriterNotes, notes_of, remade
from barograph.submit.own_queries import OwnQueries

CHECKPOINT = "checkpointLocation"
NOT_REAL_TIME = "its trigger is not real-time: .trigger(realTime='60 seconds') makes it one"
NO_CHECKPOINT = "it has no checkpoint to start again from: add .option('checkpointLocation', FOLDER)"

# Takes a function that makes a start, the checkpoint unless the writer names it, and the writer's session; gives the
# supervised query.
Keep = Callable[[Build, str | None, SparkSession], Supervised]


def keep_starts(keep: Keep, queries: OwnQueries, say: Callable[[str], None]) -> None:
    """From now on queries of this process are kept, if they can be. The calls of writers must be noted."""
    for name in ("start", "toTable"):
        setattr(DataStreamWriter, name, _kept(getattr(DataStreamWriter, name), keep, queries, say))


def why_not(notes: WriterNotes, given: Mapping[str, Any], default_folder: str | None) -> str:
    """Why a query is not kept; empty if it is. given: options of the start itself. default_folder: for checkpoints."""
    if not notes.is_real_time:
        return NOT_REAL_TIME
    return "" if has_checkpoint(notes, given) or default_folder else NO_CHECKPOINT


def has_checkpoint(notes: WriterNotes, given: Mapping[str, Any]) -> bool:
    return notes.option(CHECKPOINT) is not None or any(key.lower() == CHECKPOINT.lower() for key in given)


def _kept(
    original: Callable[..., StreamingQuery], keep: Keep, queries: OwnQueries, say: Callable[[str], None]
) -> Callable[..., StreamingQuery]:
    @functools.wraps(original)
    def start(self: DataStreamWriter, *positional: Any, **named: Any) -> StreamingQuery:
        if is_starting_a_run():  # of a query that is kept already
            return original(self, *positional, **named)
        notes = notes_of(self)
        folder = self._spark.conf.get(f"spark.sql.streaming.{CHECKPOINT}", None)
        name = named.get("queryName") or notes.query_name
        if why := why_not(notes, named, folder):
            say(f"{f'the query {name}' if name else 'a query'} is not kept: {why}")
            query = original(self, *positional, **named)
            queries.note(query)
            return query
        # As Spark has it: below the folder for all, by name. One without a name gets its own at each start, which
        # must be the same for all its runs.
        own = has_checkpoint(notes, named)
        checkpoint = None if own else f"{str(folder).rstrip('/')}/{name or uuid.uuid4()}"
        begun: list[str] = []

        def begin(writer: DataStreamWriter) -> StreamingQuery:
            query = original(writer, *positional, **named)
            begun.append(str(query.id))
            queries.begin(begun[-1])
            return query

        try:
            handle = keep(lambda: PreparedStart(remade(self, notes), begin, named), checkpoint, self._spark)
        except BaseException:
            for begun_id in begun:
                queries.forget(begun_id)
            raise
        queries.keep(handle, handle.await_end)
        return handle

    return start
