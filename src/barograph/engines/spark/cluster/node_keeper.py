"""Keeps the nodes and the master of an embedded cluster alive: what dies is started again, a node with its fence. One
that is stopped for long is killed first: it answers as little as a dead one.

A node that was ordered down (a mark file in the run's folder) stays down until the mark is gone; any process that knows
the run's record may set it. Executors are not restarted here: Spark's own master does that.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from barograph.config import default
from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.processes import EndWatch, Process, alive, is_stopped, kill
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.start_signs import StartFailed
from barograph.logs import OnceOnly

log = logging.getLogger(__name__)

_LOOK_S = 0.2  # while something is down or stopped: it may be ordered up, go on, or its wait be over
_ALL_UP_S = 2.0  # an end is noticed at once, a stop is not
HUNG_AFTER_S: float | None = default("executor.hung-after")
_LATE_S = 3.0  # the time since the look before counts for at most this: this process may have been stopped itself
_QUICK_DEATH_S = 10.0  # a node that dies sooner after its start waits longer for its next start
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0

_NEVER = (-_LONGEST_WAIT_S, 0)


def _mark_name(node: str) -> str:
    return f"down-{node}"


def _mark(run: Run, node: str) -> Path:
    return run.folder / _mark_name(node)


def order_down(run: Run, node: str, why: str = "") -> None:
    """The node is not started again once it is dead."""
    _mark(run, node).write_text(why)


def order_up(run: Run, node: str) -> None:
    """The node is started again if it is dead."""
    _mark(run, node).unlink(missing_ok=True)


def ordered_down(run: Run, why: str) -> tuple[str, ...]:
    """Nodes that were ordered down for this reason."""
    folder, found = run.folder, []  # each observation asks for it
    for node in run.settings.node_names():
        with contextlib.suppress(OSError):
            if (folder / _mark_name(node)).read_text() == why:
                found.append(node)
    return tuple(found)


class StoppedLeaders:
    """Which masters and workers have been stopped for too long: each look finds them so. A short stop, as by a
    debugger, is in order. longest_s: how long one may be; None: as long as it likes."""

    def __init__(self, longest_s: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._longest_s, self._now = longest_s, now
        self._looked_s = now()
        self._stopped_s: dict[Process, float] = {}

    @property
    def any(self) -> bool:
        """Whether the last look found one that is judged."""
        return bool(self._stopped_s)

    def look(self, leaders: Mapping[str, Process]) -> tuple[str, ...]:
        """The names of those that have been stopped for too long."""
        if self._longest_s is None:
            return ()
        now_s = self._now()
        passed_s, self._looked_s = min(_LATE_S, now_s - self._looked_s), now_s
        before = self._stopped_s
        stopped = [leader for leader in leaders.values() if is_stopped(leader)]
        self._stopped_s = {s: before[s] + passed_s if s in before else 0.0 for s in stopped}
        return tuple(n for n, leader in leaders.items() if self._stopped_s.get(leader, 0.0) > self._longest_s)


class NodeKeeper:
    """Restarts dead nodes, and a dead master, until it is closed. Used by the process that owns the cluster.

    hung_after_s: for how long one may be stopped; None: for any time. problems: what could not be restarted, one
    sentence each."""

    def __init__(self, cluster: EmbeddedCluster, hung_after_s: float | None = HUNG_AFTER_S) -> None:
        self._cluster, self._hung_after_s = cluster, hung_after_s
        self._stopped = threading.Event()
        self._ends = EndWatch()
        self._starts: dict[str, tuple[float, int]] = {}  # name -> its last start, and quick deaths in a row before it
        self.problems: list[str] = []
        self._warnings = OnceOnly(log)
        # The master has a thread of its own: a node that starts waits for it.
        kept = {"master-keeper": (MASTER,), "node-keeper": cluster.settings.node_names()}
        self._threads = [threading.Thread(target=self._watch, args=(k,), name=n, daemon=True) for n, k in kept.items()]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Start nothing more. A start under way is waited for, so that none of its processes is left behind."""
        self._stopped.set()
        self._ends.wake()
        for thread in self._threads:
            thread.join()
        self._ends.close()

    def _watch(self, names: Collection[str]) -> None:
        what = ", ".join(names)
        looking = f"looking after {what}"
        stopped = StoppedLeaders(self._hung_after_s)
        while not self._stopped.is_set():
            try:
                self._look(names, stopped)
                self._warnings.over(looking)
            except Exception as error:  # noqa: BLE001  # the machine may have no process, memory or descriptor left
                why = f"{type(error).__name__}: {error}"
                self._warnings.warn(looking, f"{what} cannot be looked after: {why}; it is tried again")
                self._stopped.wait(_LOOK_S)

    def _look(self, names: Collection[str], stopped: StoppedLeaders) -> None:
        leaders = self._cluster.run.leaders
        up = {name: leaders[name] for name in names if name in leaders and alive(leaders[name])}
        for name in stopped.look(up):
            log.warning("%s has been stopped for more than %g s: it is killed", name, self._hung_after_s)
            kill([up[name]])
        self._ends.wait(up.values(), _ALL_UP_S if len(up) == len(names) and not stopped.any else _LOOK_S)
        for name in names:
            if not self._stopped.is_set() and self._is_to_start(name):
                self._start(name)

    def _is_to_start(self, name: str) -> bool:
        run = self._cluster.run
        leader = run.leaders.get(name)
        if (leader is not None and alive(leader)) or _mark(run, name).exists():
            return False
        last, quick_deaths = self._starts.get(name, _NEVER)
        return time.monotonic() >= last + _wait_s(quick_deaths)

    def _start(self, name: str) -> None:
        last, quick_deaths = self._starts.get(name, _NEVER)
        quick = time.monotonic() - last < _QUICK_DEATH_S + _wait_s(quick_deaths)
        self._starts[name] = (time.monotonic(), quick_deaths + 1 if quick else 0)
        log.info("%s has ended or was fetched: it is started", name)
        try:
            if name == MASTER:
                self._cluster.start_master()
            else:
                self._start_node(name)
            self._warnings.over(name)
        except (StartFailed, OSError) as error:
            self.problems.append(f"{name} did not come back: {error}")
            self._warnings.warn(name, f"{self.problems[-1]}; it is started again later")

    def _start_node(self, node: str) -> None:
        groups = self._cluster.run.groups
        fenced = groups is not None and groups.node(node).is_dir() and groups.limit(node) is not None
        self._cluster.start_node(node)
        if fenced:
            self._cluster.fence([node])


def _wait_s(quick_deaths: int) -> float:
    return doubled_s(_FIRST_WAIT_S, quick_deaths - 1, _LONGEST_WAIT_S) if quick_deaths else 0.0
