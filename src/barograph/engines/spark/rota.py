"""Releases nodes of an embedded cluster and fetches them again. Which, and when, is decided elsewhere.

A standalone master gives a new executor to whichever worker has room, and nobody can tell it which. So a released node
loses its worker process too: the one node that is fetched is then the only one with room, and what it took is free for
others meanwhile. A node on which anybody's task runs is never released. What is released is marked in the run's folder,
where the next driver, and who keeps the nodes alive, find it.
"""

import os
import signal
import threading
from collections.abc import Iterable

from barograph.engines.spark import runs
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.keeper import order_down, order_up, ordered_down
from barograph.engines.spark.nodes import option_of
from barograph.engines.spark.processes import kill_marked, marked, send, wait_gone
from barograph.engines.spark.runs import Run

RELEASED = "released"
_END_S = 10.0


def fetch_all(run: Run) -> None:
    """Whatever somebody released is started again."""
    for node in ordered_down(run, RELEASED):
        order_up(run, node)


class Rota:
    """Of one driver. run: its embedded cluster; None where it has none, and then nothing is ever released."""

    def __init__(self, engine: SparkEngine, run: Run | None, application: str) -> None:
        self._engine, self._run, self._application = engine, run, application
        self._lock = threading.Lock()
        engine.released = self.released

    def released(self) -> tuple[str, ...]:
        return () if self._run is None else ordered_down(self._run, RELEASED)

    def change(self, release: Iterable[str], fetch: Iterable[str]) -> list[str]:
        """What was done, and what was not and why, one sentence each."""
        if self._run is None:
            return ["nodes are kept: only those of an embedded cluster can be fetched again by name"]
        names = self._run.settings.node_names()
        said = []
        with self._lock:
            for node in fetch:
                why = "" if node in self.released() else "it was not released"
                if not why:
                    order_up(self._run, node)
                said.append(f"{node} is not fetched: {why}" if why else f"fetched {node}")
            for node in release:
                why = self._release(self._run, node) if node in names else "there is no such node"
                said.append(f"{node} is not released: {why}" if why else f"released {node}")
        return said

    def close(self) -> None:
        """A cluster that goes on without this driver gets its nodes back."""
        if self._run is not None and self._run.owner.pid != os.getpid():
            fetch_all(self._run)

    def _release(self, run: Run, node: str) -> str:
        """Why not; empty when it is done."""
        if node in self.released():
            return "it is released already"
        if others := self._others(run, node):
            return f"application {others[0]} has an executor there"
        order_down(run, node, RELEASED)  # before anything ends, so that nobody starts it again
        try:
            why = self._engine.let_go(node)
            if not why:
                now = runs.read(run.folder) or run  # its keeper writes down each new life of a node
                leader = now.leaders.get(node)
                if leader is not None and send(leader, signal.SIGTERM):
                    wait_gone(leader, _END_S)
                kill_marked(run.run_id, node)  # an executor may outlive a worker that ends while it is ending it
        except BaseException:
            order_up(run, node)
            raise
        finally:
            self._engine.want_executors()
        if why:
            order_up(run, node)
        return why

    def _others(self, run: Run, node: str) -> list[str]:
        """Applications besides this one that have an executor on the node."""
        found = {option_of(process, "--app-id") for process in marked(run.run_id, node)}
        return sorted(found - {self._application, ""})
