"""Releases nodes and fetches them again, within the bounds. Which node, and when, is decided elsewhere.

A node on which a task runs is never released.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from barograph.engines.spark.executors.port import Executors, KeptNode
from barograph.model import Node, Outcome, Refusal, RefusalCode, Worker, nodes_kept

log = logging.getLogger(__name__)


class ReleasableNodes(Protocol):
    """What this needs of an engine."""

    def workers(self) -> tuple[Worker, ...]: ...

    def asleep(self) -> tuple[Node, ...]: ...

    @property
    def nodes(self) -> tuple[Node, ...]: ...

    def let_go(self, node: str, end: Callable[[Collection[str]], KeptNode | None]) -> KeptNode | None: ...


class NodeRelease:
    """Of one driver. executors: None if Spark runs in one process, and then no node is ever released."""

    def __init__(self, engine: ReleasableNodes, executors: Executors | None) -> None:
        self._engine, self._executors = engine, executors
        self._lock = threading.Lock()

    def released(self) -> tuple[str, ...]:
        return () if self._executors is None else self._executors.released()

    def change(self, release: Iterable[str], fetch: Iterable[str]) -> Outcome:
        """Release and fetch nodes. The outcome has a sentence for each that was, and leaves out the others."""
        if self._executors is None:
            return Outcome(left_out=nodes_kept(release, fetch, RefusalCode.NODES_KEPT, "Spark runs in one process"))
        done: list[str] = []
        left_out: list[Refusal] = []
        with self._lock:
            for node in fetch:
                if (kept := self._fetch(self._executors, node)) is None:
                    done.append(f"fetched {node}")
                else:
                    left_out += nodes_kept((), (node,), kept.code, kept.why)
            for node in release:
                if (kept := self._release(self._executors, node)) is None:
                    done.append(f"released {node}")
                else:
                    left_out += nodes_kept((node,), (), kept.code, kept.why)
        for sentence in (*done, *(f"no {r.what}: {r.reason}" for r in left_out)):
            log.info("%s", sentence)
        return Outcome(tuple(done), left_out=tuple(left_out))

    def close(self) -> None:
        if self._executors is not None:
            self._executors.close()

    def _fetch(self, executors: Executors, node: str) -> KeptNode | None:
        """Returns None when it is done, else why not."""
        asleep = self._engine.asleep()
        if node not in {*executors.released(), *(n.name for n in asleep)}:
            return KeptNode(RefusalCode.NOT_RELEASED, "it was not released")
        slots = next((n.slots for n in (*asleep, *self._engine.nodes) if n.name == node), 1)
        live, most = len(self._engine.workers()), executors.bounds.most
        if most is not None and live + slots > most:
            return KeptNode(RefusalCode.MOST_EXECUTORS, f"executors.most is {most}, and there are {live}")
        executors.want((live if executors.target is None else executors.target) + slots, node)
        return None

    def _release(self, executors: Executors, node: str) -> KeptNode | None:
        """Returns None when it is done, else why not."""
        if node not in {n.name for n in self._engine.nodes}:
            return KeptNode(RefusalCode.NO_SUCH_NODE, "there is no such node")
        if node in executors.released():
            return KeptNode(RefusalCode.NODE_RELEASED, "it is released already")
        workers = self._engine.workers()
        left, least = sum(w.slot.node != node for w in workers), executors.bounds.least
        if left < min(least, len(workers)):
            return KeptNode(RefusalCode.LEAST_EXECUTORS, f"executors.least is {least}, and {left} would be left")
        try:
            return self._engine.let_go(node, lambda ids: executors.release(node, ids))
        finally:
            executors.settle()
