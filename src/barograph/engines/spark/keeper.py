"""Keeps the nodes of an embedded cluster alive: one that dies is started again, with its fence.

A node that somebody ordered down (a mark in the run's folder) stays down until the mark is gone; whoever knows the
run's record may set it. Executors are not its business: Spark's own master brings them back.
"""

import contextlib
import threading
import time
from pathlib import Path

from barograph.engines.spark.embedded import EmbeddedCluster, StartFailed
from barograph.engines.spark.processes import alive
from barograph.engines.spark.runs import Run

_LOOK_S = 0.2
_QUICK_DEATH_S = 10.0
_LONGEST_WAIT_S = 30.0


def _mark(run: Run, node: str) -> Path:
    return run.folder / f"down-{node}"


def order_down(run: Run, node: str, why: str = "") -> None:
    """The node, once dead, stays so."""
    _mark(run, node).write_text(why)


def order_up(run: Run, node: str) -> None:
    """The node is started again if it is dead."""
    _mark(run, node).unlink(missing_ok=True)


def ordered_down(run: Run, why: str) -> tuple[str, ...]:
    """Nodes that are down on somebody's order, for this reason."""
    found = []
    for node in run.settings.node_names():
        with contextlib.suppress(OSError):
            if _mark(run, node).read_text() == why:
                found.append(node)
    return tuple(found)


class NodeKeeper:
    """Looks after the nodes until it is closed. Used by the process that owns the cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._tries: dict[str, tuple[float, float]] = {}  # node -> when it was last started, the wait after that
        self.said: list[str] = []
        threading.Thread(target=self._watch, name="node-keeper", daemon=True).start()

    def close(self) -> None:
        """Start nothing more. A start under way is waited for, so that nothing is left of it."""
        self._stopped.set()
        with self._lock:
            pass

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            for node in self._cluster.settings.node_names():
                with self._lock:
                    if not self._stopped.is_set() and self._is_to_start(node):
                        self._start(node)

    def _is_to_start(self, node: str) -> bool:
        run = self._cluster.run
        leader = run.leaders.get(node)
        if (leader is not None and alive(leader)) or _mark(run, node).exists():
            return False
        last, wait_s = self._tries.get(node, (-_LONGEST_WAIT_S, 0.0))
        return time.monotonic() >= last + wait_s

    def _start(self, node: str) -> None:
        groups = self._cluster.run.groups
        fenced = groups is not None and groups.node(node).is_dir() and groups.limit(node) is not None
        last, wait_s = self._tries.get(node, (-_LONGEST_WAIT_S, 0.0))
        quick = time.monotonic() - last < _QUICK_DEATH_S + wait_s
        self._tries[node] = (time.monotonic(), min(_LONGEST_WAIT_S, max(1.0, 2 * wait_s)) if quick else 0.0)
        try:
            self._cluster.start_node(node)
            if fenced:
                self._cluster.fence([node])
        except (StartFailed, OSError) as error:
            self.said.append(f"{node} did not come back: {error}")
