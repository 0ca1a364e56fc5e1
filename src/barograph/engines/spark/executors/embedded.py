"""Executors of an embedded cluster: a node that is released loses its worker process too.

A standalone master places a new executor on any worker with room, and it cannot be told which. Without its worker
process, a node that is fetched is the only one with room, and a released one uses nothing. Released nodes are marked in
the run's folder, where the next driver and ``node_keeper`` find the marks.
"""

import os
import signal
from collections.abc import Collection

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.node_keeper import order_down, order_up, ordered_down
from barograph.engines.spark.cluster.node_status import option_of
from barograph.engines.spark.cluster.processes import kill_marked, marked, send, wait_gone
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.executors.port import ExecutorBounds, ExecutorRequests, KeptNode
from barograph.model import RefusalCode

RELEASED = "released"
_END_S = 10.0


def fetch_all(run: Run) -> None:
    """Start all released nodes again."""
    for node in ordered_down(run, RELEASED):
        order_up(run, node)


class EmbeddedExecutors:
    """Of one application. run: its cluster, which may have other applications too."""

    target: int | None = None

    def __init__(self, requests: ExecutorRequests, run: Run, application: str, bounds: ExecutorBounds) -> None:
        self._requests, self._run, self._application, self.bounds = requests, run, application, bounds
        self._leaving = ""  # a node whose executors were ended, and whose worker process is to end

    def released(self) -> tuple[str, ...]:
        return ordered_down(self._run, RELEASED)

    def more(self, there: Collection[str]) -> int:  # noqa: ARG002
        return 0  # it has the nodes that it has

    def want(self, count: int, node: str = "") -> None:  # noqa: ARG002  # the node says how many
        for name in (node,) if node else self.released():
            order_up(self._run, name)

    def release(self, node: str, ids: Collection[str]) -> KeptNode | None:
        if others := self._others(node):
            return KeptNode(RefusalCode.NODE_IN_USE, f"application {others[0]} has an executor there")
        order_down(self._run, node, RELEASED)  # before anything ends, so that the node keeper does not start it again
        idle = False
        try:
            idle = not ids or self._requests.end_idle(ids, None)
        finally:
            if idle:
                self._leaving = node
            else:
                order_up(self._run, node)
        return None if idle else KeptNode(RefusalCode.NODE_IN_USE, "a task runs there")

    def settle(self) -> None:
        node, self._leaving = self._leaving, ""
        try:
            if node:
                now = runs.read(self._run.folder) or self._run  # the node keeper records each new worker process
                leader = now.leaders.get(node)
                if leader is not None and send(leader, signal.SIGTERM):
                    wait_gone(leader, _END_S)
                kill_marked(self._run.run_id, node)  # an executor may outlive its worker
        except BaseException:
            order_up(self._run, node)
            raise
        finally:
            self._requests.want_executors(None)

    def close(self) -> None:
        """Start released nodes again if the cluster outlives this driver."""
        if self._run.owner.pid != os.getpid():
            fetch_all(self._run)

    def _others(self, node: str) -> list[str]:
        """Applications besides this one that have an executor on the node."""
        found = {option_of(process, "--app-id") for process in marked(self._run.run_id, node)}
        return sorted(found - {self._application, ""})
