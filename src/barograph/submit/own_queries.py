"""The queries of a program: those that are kept, which may have many runs, and those that run as Spark runs them.

For ``spark.streams`` and for listeners: both must see one query where Spark sees its runs.
"""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S = 0.2


class EndedHearer(Protocol):
    """Learns that a kept query has ended for good. run: Spark's id of its last run."""

    def ended(self, query: str, run: str) -> None: ...


class OwnQueries:
    """Thread-safe. A kept query is registered before its handle is made, by its id, which all its runs have."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, StreamingQuery | None] = {}  # None while the handle is being made
        self._since_reset: list[StreamingQuery] = []
        self._hearers: list[EndedHearer] = []

    def begin(self, query: str) -> None:
        """The query of this id is a kept one: its first run has been started."""
        with self._lock:
            self._kept.setdefault(query, None)

    def forget(self, query: str) -> None:
        with self._lock:
            self._kept.pop(query, None)

    def keep(self, handle: StreamingQuery, await_end: Callable[[], object]) -> None:
        """await_end: returns when the handle has ended for good."""
        with self._lock:
            self._kept[str(handle.id)] = handle
            self._since_reset.append(handle)
        name = f"end-of-{str(handle.id)[:8]}"
        threading.Thread(target=self._await_end, args=(handle, await_end), name=name, daemon=True).start()

    def note(self, query: StreamingQuery) -> None:
        """A query that runs as Spark runs it."""
        with self._lock:
            self._since_reset.append(query)

    def is_kept(self, query: str) -> bool:
        with self._lock:
            return query in self._kept

    def kept(self) -> dict[str, StreamingQuery]:
        """Handles of kept queries that have not ended, by id."""
        with self._lock:
            return {name: handle for name, handle in self._kept.items() if handle is not None and handle.isActive}

    def hear(self, hearer: EndedHearer, on: bool = True) -> None:
        with self._lock:
            self._hearers = [h for h in self._hearers if h is not hearer] + ([hearer] if on else [])

    def await_any(self, timeout_s: float | None) -> StreamingQuery | None:
        """The first query since the last reset that has ended; None if the timeout is over before one does."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            with self._lock:
                looked_at = list(self._since_reset)
            ended = next((query for query in looked_at if not query.isActive), None)
            left_s = _LOOK_S if deadline_s is None else deadline_s - time.monotonic()
            if ended is not None or left_s <= 0:
                return ended
            time.sleep(min(_LOOK_S, left_s))

    def reset(self) -> None:
        """Queries that have ended are no longer waited for."""
        with self._lock:
            self._since_reset = [query for query in self._since_reset if query.isActive]

    def _await_end(self, handle: StreamingQuery, await_end: Callable[[], object]) -> None:
        await_end()
        query = str(handle.id)
        with self._lock:
            if self._kept.get(query) is handle:
                del self._kept[query]
            hearers = list(self._hearers)
        for hearer in hearers:
            hearer.ended(query, str(handle.runId))
