"""Releases nodes of an embedded cluster and fetches them again. Which node, and when, is decided elsewhere.

A standalone master places a new executor on any worker with room, and it cannot be told which. So a released node
loses its worker process too: a node that is fetched is then the only one with room, and a released one uses nothing. A
node on which a task runs is never released. Released nodes are marked in the run's folder, where the next driver and
``node_keeper`` find the marks.
"""

import os
import signal
import threading
from collections.abc import Iterable

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.node_keeper import order_down, order_up, ordered_down
from barograph.engines.spark.cluster.node_status import option_of
from barograph.engines.spark.cluster.processes import kill_marked, marked, send, wait_gone
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.engine import SparkEngine

RELEASED = "released"
_END_S = 10.0


def fetch_all(run: Run) -> None:
    """Start all released nodes again."""
    for node in ordered_down(run, RELEASED):
        order_up(run, node)


def released_nodes(run: Run | None) -> tuple[str, ...]:
    """Names of the nodes of an embedded cluster that are released now; none where there is no such cluster."""
    return () if run is None else ordered_down(run, RELEASED)


class NodeRelease:
    """Of one driver. run: its embedded cluster; None if it has none, and then no node is ever released."""

    def __init__(self, engine: SparkEngine, run: Run | None, application: str) -> None:
        self._engine, self._run, self._application = engine, run, application
        self._lock = threading.Lock()

    def released(self) -> tuple[str, ...]:
        return released_nodes(self._run)

    def change(self, release: Iterable[str], fetch: Iterable[str]) -> list[str]:
        """Release and fetch nodes. Returns what was done, or why it was not, one sentence each."""
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
        """Start released nodes again if the cluster outlives this driver."""
        if self._run is not None and self._run.owner.pid != os.getpid():
            fetch_all(self._run)

    def _release(self, run: Run, node: str) -> str:
        """Returns "" when it is done, else why not."""
        if node in self.released():
            return "it is released already"
        if others := self._others(run, node):
            return f"application {others[0]} has an executor there"
        order_down(run, node, RELEASED)  # before anything ends, so that the node keeper does not start it again
        try:
            why = self._engine.let_go(node)
            if not why:
                now = runs.read(run.folder) or run  # the node keeper records each new worker process
                leader = now.leaders.get(node)
                if leader is not None and send(leader, signal.SIGTERM):
                    wait_gone(leader, _END_S)
                kill_marked(run.run_id, node)  # an executor may outlive its worker
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
