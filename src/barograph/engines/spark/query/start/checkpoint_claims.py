"""Refuses a second supervised query on a checkpoint of this driver, before it is started.

Spark would stop the first one's run for it, the supervisor would start that again, and whichever ended first would give
back the lease that both hold. Queries of other drivers are refused by the lease. It starts and stops nothing.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.engines.spark.query.start.writer_ahead import Build
from barograph.engines.spark.tolerated import tolerated
from barograph.model import BadInput

log = logging.getLogger(__name__)

_OPTION, _FOLDER = "checkpointLocation", "spark.sql.streaming.checkpointLocation"


class Kept(Protocol):
    """What is asked of a supervised query."""

    @property
    def topology(self) -> str: ...

    @property
    def isActive(self) -> bool: ...  # noqa: N802  # Spark's name


class StartClaim:
    """Of one start. query: set when it has started; the claim stands until that has ended for good. on_used: whether a
    query was started on the checkpoint before, by this driver or another."""

    def __init__(self, claims: "CheckpointClaims", build: Build, checkpoint: str | None) -> None:
        self._claims, self._build, self._checkpoint = claims, build, checkpoint
        self._is_made = self.on_used = False
        self.query: Kept | None = None

    def build(self) -> DataStreamWriter | PreparedStart:
        """In the place of the program's own function: that alone says which checkpoint it is, if no other is given.
        All runs of a query have one checkpoint, so the first writer is asked for it."""
        made = self._build()
        if not self._is_made:
            self._claims.make(self, asked_for(made, self._checkpoint))
            self._is_made = True
        return made


class CheckpointClaims:
    """qualified: a folder with its scheme and host, as Spark writes it. is_used: whether a query was started on it."""

    def __init__(self, qualified: Callable[[str], str], is_used: Callable[[str], bool]) -> None:
        self._qualified, self._is_used, self._lock = qualified, is_used, threading.Lock()
        self._made: dict[str, StartClaim] = {}

    @contextmanager
    def claim(self, build: Build, checkpoint: str | None) -> Iterator[StartClaim]:
        """For one start within the block. Without a query at its end there is no claim any more."""
        claim = StartClaim(self, build, checkpoint)
        try:
            yield claim
        finally:
            with self._lock:
                self._made = {p: c for p, c in self._made.items() if c is not claim or c.query is not None}

    def make(self, claim: StartClaim, checkpoint: str | None) -> None:
        """None: it has none, or it is not known, and Spark decides."""
        if checkpoint is None:
            return
        place = checkpoint
        with tolerated(log, f"the file system of {checkpoint} is not known", Exception):
            place = self._qualified(checkpoint)
            claim.on_used = self._is_used(checkpoint)
        place = one_name_of(place)
        with self._lock:
            self._made = {p: c for p, c in self._made.items() if c.query is None or c.query.isActive}
            other = self._made.setdefault(place, claim)
        if other is not claim:
            name = "another query" if other.query is None else f"the query {other.query.topology}"
            raise BadInput(
                f"the checkpoint {checkpoint} is in use by {name} of this driver: stop that query first, or use "
                "another checkpoint"
            )


def qualified_by(spark: SparkSession) -> Callable[[str], str]:
    def qualified(checkpoint: str) -> str:
        files, path = _files_of(spark, checkpoint)
        return str(files.makeQualified(path).toString())

    return qualified


def used_in(spark: SparkSession) -> Callable[[str], bool]:
    def is_used(checkpoint: str) -> bool:
        files, metadata = _files_of(spark, f"{checkpoint.rstrip('/')}/metadata")  # with the query's id, written first
        return bool(files.exists(metadata))

    return is_used


def _files_of(spark: SparkSession, place: str) -> tuple[Any, Any]:
    """Hadoop's file system of a place, and its path there."""
    jvm, context = spark._jvm, spark.sparkContext._jsc
    assert jvm is not None and context is not None
    path = jvm.org.apache.hadoop.fs.Path(place)
    return path.getFileSystem(context.hadoopConfiguration()), path


def one_name_of(place: str) -> str:
    """Of a folder with several: links of the local file system are followed."""
    if place.startswith("file:"):
        return f"file:{os.path.realpath('/' + place.removeprefix('file:').lstrip('/'))}"
    return place.rstrip("/") if ":" in place.partition("/")[0] else f"file:{os.path.realpath(place)}"


def asked_for(start: DataStreamWriter | PreparedStart, given: str | None) -> str | None:
    """The checkpoint that a start is going to have, by Spark's rules: an option of the start itself, else what is
    ``given``, the writer's option, or a folder by the query's name in the session's folder for checkpoints."""
    writer, named = (start.writer, start.named) if isinstance(start, PreparedStart) else (start, {})
    own = {key.lower(): str(value) for key, value in named.items() if value is not None}
    if (found := own.get(_OPTION.lower(), given)) is not None:
        return found
    if isinstance(writer, DataStreamWriter):  # else it is refused anyway
        with tolerated(log, "the checkpoint of a query that is to be started is not known", Exception):
            options = _options_of(writer)
            if (found := options(_OPTION)) is not None:
                return found
            folder, name = writer._df.sparkSession.conf.get(_FOLDER, None), own.get("queryname", options("queryName"))
            return None if folder is None or name is None else f"{folder.rstrip('/')}/{name}"
    return None


def _options_of(writer: DataStreamWriter) -> Callable[[str], str | None]:
    """A writer has no public way to ask for them."""
    field = writer._jwrite.getClass().getDeclaredField("extraOptions")
    field.setAccessible(True)
    options = field.get(writer._jwrite)

    def option(name: str) -> str | None:
        found = options.get(name)
        return str(found.get()) if found.isDefined() else None

    return option
