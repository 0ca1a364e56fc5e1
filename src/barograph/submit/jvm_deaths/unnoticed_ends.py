"""Notices a query that died while main of its application waits for something else: nothing starts it again. It only
says so."""

from collections.abc import Callable, Iterable
from typing import Any

from barograph.engines.spark.query.failures.diagnosis import diagnose
from barograph.engines.spark.query.naming import topology_name

PATIENCE_S = 5.0  # so long a main that waits for the query, or starts it itself, may take


class UnnoticedEnds:
    """text_of: an exception of Java with its stack, as text."""

    def __init__(self, say: Callable[[str], None], text_of: Callable[[Any], str]) -> None:
        self._say, self._text_of = say, text_of
        self._call = 0
        self._running: dict[str, tuple[str, Any]] = {}  # run -> the query's name, and Spark's handle
        self._ended: dict[str, tuple[float, str]] = {}  # name -> when it was found to have died, and of what
        self._told: set[str] = set()

    def look(self, call: int, active: Iterable[Any], now_s: float) -> None:
        """call: the number of the present call of main; 0 if it is not being called. active: Java's running queries."""
        if call != self._call:
            self._call = call
            self._running.clear()
            self._ended.clear()
        if not call:
            return
        now = {str(query.runId()): query for query in active}
        for run in self._running.keys() - now.keys():
            name, query = self._running.pop(run)
            if (error := query.exception()).isDefined():
                self._ended[name] = (now_s, diagnose(self._text_of(error.get()), now_s, None, ()).text)
        for run in now.keys() - self._running.keys():
            query = now[run]
            self._running[run] = (topology_name(query.name(), str(query.id())), query)
        for name in {name for name, _ in self._running.values()}:
            self._ended.pop(name, None)  # main itself has started it again
        for name, (died_s, cause) in self._ended.items():
            if now_s - died_s >= PATIENCE_S and name not in self._told:
                self._told.add(name)
                self._say(
                    f"the query {name} ended ({cause}) and main waits for another: wait with awaitAnyTermination, or "
                    "it is not started again"
                )
