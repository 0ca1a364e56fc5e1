"""The writer of the next query run, made ahead: making one takes many calls, during which a query would be down.

Py4J's Java objects are in a cycle of references as soon as a method of theirs is called (object, table of methods,
method): 1.2 KB here, and in the JVM the object itself, perhaps a whole query plan, stay until Python collects its
oldest generation, which may take hours. A driver whose query is restarted again and again grows by that. So garbage is
collected once for each run, when the run is up.
"""

import gc
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.engines.spark.query.start.real_time_trigger import require_real_time
from barograph.engines.spark.query.start.state_format import require_own_state
from barograph.model import BadInput

log = logging.getLogger(__name__)

Build = Callable[[], DataStreamWriter | PreparedStart]
_Made = Future[DataStreamWriter | PreparedStart]


class WriterAhead:
    """Calls ``build`` in a thread of its own. checkpoint: set on the writer if it is given.

    The interpreter's exit waits for the threads of a pool, and ``build`` may hang: this thread is a daemon instead.
    """

    def __init__(self, build: Build, checkpoint: str | None) -> None:
        self._build, self._checkpoint = build, checkpoint
        self._asked: queue.SimpleQueue[_Made | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._make, name="writer-ahead", daemon=True)
        self._made: _Made | None = None
        self._was_taken = self._closed = False

    def prepare(self) -> None:
        if self._made is None and not self._closed:
            if self._thread.ident is None:
                self._thread.start()
            self._made = _Made()
            self._asked.put(self._made)

    def take(self) -> DataStreamWriter | PreparedStart:
        """The writer that was made ahead if it is ready, else a new one.

        The first is asked for by the program itself, all others by the thread that supervises the query: an exit of the
        program that is raised there would end that thread only, as if the query had been stopped in order."""
        made, self._made = self._made, None
        was_taken, self._was_taken = self._was_taken, True
        if made is not None and made.done():
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
        """Nothing more is made. It does not wait for what is being made."""
        self._closed = True
        self._asked.put(None)

    def _make(self) -> None:
        while (made := self._asked.get()) is not None and not self._closed:
            try:
                made.set_result(self._new())
            except BaseException as error:  # noqa: BLE001  # the program's own function; ``take`` tells it
                made.set_exception(error)
            del made  # else this thread would keep the writer until the next is asked for
            gc.collect()

    def _new(self) -> DataStreamWriter | PreparedStart:
        writer = self._build()
        if not isinstance(writer, DataStreamWriter | PreparedStart):
            raise BadInput(f"the function must return a DataStreamWriter, not {type(writer).__name__}; do not start it")
        require_real_time(writer)
        require_own_state(writer)
        if self._checkpoint is not None:
            writer = writer.option("checkpointLocation", self._checkpoint)
        return writer
