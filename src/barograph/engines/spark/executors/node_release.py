"""Releases nodes and fetches them again, within the bounds. Which node, and when, is decided elsewhere.

A node on which a task runs is never released.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from barograph.engines.spark.executors.port import Executors
from barograph.model import Node, Worker

log = logging.getLogger(__name__)


class ReleasableNodes(Protocol):
    """What this needs of an engine."""

    def workers(self) -> tuple[Worker, ...]: ...

    def asleep(self) -> tuple[Node, ...]: ...

    @property
    def nodes(self) -> tuple[Node, ...]: ...

    def let_go(self, node: str, end: Callable[[Collection[str]], str]) -> str: ...


class NodeRelease:
    """Of one driver. executors: None if Spark runs in one process, and then no node is ever released."""

    def __init__(self, engine: ReleasableNodes, executors: Executors | None) -> None:
        self._engine, self._executors = engine, executors
        self._lock = threading.Lock()

    def released(self) -> tuple[str, ...]:
        return () if self._executors is None else self._executors.released()

    def change(self, release: Iterable[str], fetch: Iterable[str]) -> list[str]:
        """Release and fetch nodes. Returns what was done, or why it was not, one sentence each."""
        if self._executors is None:
            return ["nodes are kept: Spark runs in one process"]
        said = []
        with self._lock:
            for node in fetch:
                why = self._fetch(self._executors, node)
                said.append(f"{node} is not fetched: {why}" if why else f"fetched {node}")
            for node in release:
                why = self._release(self._executors, node)
                said.append(f"{node} is not released: {why}" if why else f"released {node}")
        for sentence in said:
            log.info("%s", sentence)
        return said

    def close(self) -> None:
        if self._executors is not None:
            self._executors.close()

    def _fetch(self, executors: Executors, node: str) -> str:
        """Returns "" when it is done, else why not."""
        asleep = self._engine.asleep()
        if node not in {*executors.released(), *(n.name for n in asleep)}:
            return "it was not released"
        slots = next((n.slots for n in (*asleep, *self._engine.nodes) if n.name == node), 1)
        live, most = len(self._engine.workers()), executors.bounds.most
        if most is not None and live + slots > most:
            return f"executors.most is {most}, and there are {live}"
        executors.want((live if executors.target is None else executors.target) + slots, node)
        return ""

    def _release(self, executors: Executors, node: str) -> str:
        """Returns "" when it is done, else why not."""
        if node not in {n.name for n in self._engine.nodes}:
            return "there is no such node"
        if node in executors.released():
            return "it is released already"
        workers = self._engine.workers()
        left, least = sum(w.slot.node != node for w in workers), executors.bounds.least
        if left < min(least, len(workers)):
            return f"executors.least is {least}, and {left} would be left"
        try:
            return self._engine.let_go(node, lambda ids: executors.release(node, ids))
        finally:
            executors.settle()
