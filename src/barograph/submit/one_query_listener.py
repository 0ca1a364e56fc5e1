"""A program's listener sees a kept query start once and end once, however many runs it has.

Reports of progress and of idle queries are passed on as they come; their ``runId`` is that of the run.
"""

import logging
import threading

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from barograph.submit.own_queries import OwnQueries

log = logging.getLogger(__name__)


class OneQueryListener(StreamingQueryListener):
    """Stands between Spark and a listener of the program. It is registered with the queries for their ends."""

    def __init__(self, theirs: StreamingQueryListener, queries: OwnQueries) -> None:
        self.theirs, self._queries = theirs, queries
        self._lock = threading.Lock()
        self._held: dict[str, QueryTerminatedEvent] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        # Spark reports the first run before ``start`` returns, so that the query is not known as a kept one yet.
        if not self._queries.is_kept(str(event.id)):
            self.theirs.onQueryStarted(event)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        self.theirs.onQueryProgress(event)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  # Spark's name
        self.theirs.onQueryIdle(event)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        query = str(event.id)
        with self._lock:
            # Held first: the query may end for good between the question and the note.
            self._held[query] = event
            if self._queries.is_kept(query):
                return
            ours = self._held.pop(query, None)
        if ours is not None:
            self.theirs.onQueryTerminated(ours)

    def ended(self, query: str, run: str) -> None:
        """The query has ended for good. Its last run's end may still be on its way from Spark; then it is passed on
        when it comes."""
        with self._lock:
            event = self._held.pop(query, None)
        if event is not None and str(event.runId) == run:
            try:
                self.theirs.onQueryTerminated(event)
            except Exception:  # what a listener raises must not end the thread that tells the others
                log.exception("a listener failed at the end of the query %s", query)
