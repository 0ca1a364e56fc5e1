"""The writer of the next query run, made ahead: making one takes many calls, during which a query would be down.

Py4J's Java objects are in a cycle of references as soon as a method of theirs is called (object, table of methods,
method): 1.2 KB here, and in the JVM the object itself, perhaps a whole query plan, stay until Python collects its
oldest generation, which may take hours. A driver whose query is restarted again and again grows by that. So garbage is
collected once for each run, when the run is up.
"""

import gc
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.engines.spark.query.start.real_time_trigger import require_real_time
from barograph.model import BadInput

log = logging.getLogger(__name__)

Build = Callable[[], DataStreamWriter | PreparedStart]


class WriterAhead:
    """Calls ``build`` in a thread of its own. checkpoint: set on the writer if it is given."""

    def __init__(self, build: Build, checkpoint: str | None) -> None:
        self._build, self._checkpoint = build, checkpoint
        self._pool = ThreadPoolExecutor(1, "writer-ahead")
        self._made: Future[DataStreamWriter | PreparedStart] | None = None
        self._was_taken = False

    def prepare(self) -> None:
        if self._made is None:
            self._made = self._pool.submit(self._new)
            self._pool.submit(gc.collect)

    def take(self) -> DataStreamWriter | PreparedStart:
        """The writer that was made ahead if it is ready, else a new one.

        The first is asked for by the program itself, all others by the thread that supervises the query: an exit of the
        program that is raised there would end that thread only, as if the query had been stopped in order."""
        made, self._made = self._made, None
        was_taken, self._was_taken = self._was_taken, True
        if made is not None and made.done() and not made.cancelled():
            if (error := made.exception()) is None:
                return made.result()
            log.warning("the next run of the query could not be prepared ahead: %s; it is prepared now", error)
        try:
            return self._new()
        except Exception:
            raise
        except BaseException as error:
            if not was_taken:
                raise
            raise RuntimeError(f"it raises {type(error).__name__}({error})") from error

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _new(self) -> DataStreamWriter | PreparedStart:
        writer = self._build()
        if not isinstance(writer, DataStreamWriter | PreparedStart):
            raise BadInput(f"the function must return a DataStreamWriter, not {type(writer).__name__}; do not start it")
        require_real_time(writer)
        if self._checkpoint is not None:
            writer = writer.option("checkpointLocation", self._checkpoint)
        return writer
