"""A small real Spark cluster on this machine: one master, and N workers that are nodes with addresses of their own.

It starts and ends processes; it has no policy and knows nothing of applications, which connect to ``master`` as on any
Spark cluster. Whatever happens to the process that made it, everything it started ends (``watchdog``, ``runs.sweep``).
"""

import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from re import Pattern
from types import TracebackType

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.class_archive import keep, use_archive, write_archive
from barograph.engines.spark.cluster.java import Java, find_java
from barograph.engines.spark.cluster.launch import MASTER, Launch, master_launch, prepare, worker_launch
from barograph.engines.spark.cluster.node_limit import make_groups
from barograph.engines.spark.cluster.node_status import NodeStatus, fence_run, lift_run, status_of
from barograph.engines.spark.cluster.processes import alive, identify, kill_marked, python_environment, wait_gone
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import MASTER_ADDRESS, ClusterSettings, require_free_port
from barograph.engines.spark.cluster.start_signs import (
    MASTER_UP,
    START_TIMEOUT_S,
    WEB_UP,
    WORKER_UP,
    await_sign,
    log_size,
)
from barograph.engines.spark.security.closed_driver import CLOSED
from barograph.engines.spark.security.private_files import append_private
from barograph.model.checks import require

COMPILER_NICE = 5  # of an executor's compiler threads; not the highest: code must become fast on a busy node too


class EmbeddedCluster:
    """A running cluster. Make one with ``start_cluster``; use it as a context manager, or call ``down``."""

    def __init__(self, run: Run, java: Java) -> None:
        self._run = run
        self._java = java
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._nodes = threading.RLock()  # a node is killed or started by one thread at a time
        self._masters = threading.Lock()  # the same for the master: nodes that start wait for it
        self._notes = threading.Lock()  # of the record

    @property
    def run(self) -> Run:
        """Its present record."""
        return self._run

    @property
    def master(self) -> str:
        """The URL applications connect to."""
        return self._run.master

    @property
    def java_home(self) -> Path:
        """JAVA_HOME for applications, so that driver and executors run on the same Java."""
        return self._java.home

    @property
    def settings(self) -> ClusterSettings:
        return self._run.settings

    def session_conf(self) -> dict[str, str]:
        """The Spark settings with which an application gets its executors as the cluster's settings say."""
        settings = self.settings
        return {
            "spark.master": self.master,
            **CLOSED,
            "spark.executor.cores": str(settings.seats),
            "spark.executor.instances": str(settings.nodes * settings.executors),
            "spark.executor.memory": f"{settings.memory_mb}m",
            "spark.executor.extraJavaOptions": " ".join(
                (
                    "-XX:+UseSerialGC",
                    # Instances have priority over the compiler, which makes them faster only later.
                    f"-XX:ThreadPriorityPolicy=1 -XX:CompilerThreadPriority={COMPILER_NICE}",
                    # Native libraries are unpacked there; a killed executor could not remove them from a shared folder.
                    f"-Djava.io.tmpdir={self._run.folder / 'tmp'}",
                )
            ),
        }

    def status(self) -> tuple[NodeStatus, ...]:
        return status_of(self._run)

    def fence(self, nodes: Iterable[str] | None = None) -> None:
        """Limit the nodes to node_cpu. Call it when the executors are up, because starting is not measured."""
        fence_run(self._run, nodes)

    def lift_fence(self, nodes: Iterable[str] | None = None) -> None:
        lift_run(self._run, nodes)

    def kill_node(self, name: str) -> None:
        """SIGKILL the node's worker and executors."""
        self._require_node(name)
        with self._nodes:
            kill_marked(self._run.run_id, name)
            self._reap(name)

    def stop_node(self, name: str, timeout_s: float = 10.0) -> None:
        """Stop the node in order: the worker ends its executors and tells the master."""
        self._require_node(name)
        leader = self._run.leaders.get(name)
        child = self._children.get(name)
        if leader is not None and child is not None and child.poll() is None:
            child.send_signal(signal.SIGTERM)
            wait_gone(leader, timeout_s)
        self.kill_node(name)

    def start_node(self, name: str) -> None:
        """Start a dead node again, with the same name and address, without a fence until ``fence`` is called again."""
        self._require_node(name)
        with self._nodes:
            leader = self._run.leaders.get(name)
            require(leader is None or not alive(leader), f"node {name} is alive already")
            kill_marked(self._run.run_id, name)  # executors that outlived their worker
            self._reap(name)
            self.lift_fence([name])
            self._start_workers([name])

    def start_master(self) -> None:
        """Start a dead master again, at the same address. It knows the application, the nodes and their executors."""
        with self._masters:
            leader = self._run.leaders.get(MASTER)
            require(leader is None or not alive(leader), "the master is alive already")
            self._reap(MASTER)
            self._start_master()

    def down(self) -> None:
        """End all processes and remove all files. Calling it again does nothing."""
        runs.clear(self._run)
        for name in list(self._children):
            self._reap(name)
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.wait()
            self._watchdog = None

    def __enter__(self) -> "EmbeddedCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def _up(self, worker_options: tuple[str, ...] | None) -> None:
        """Start everything. The watchdog is first: from then on a crash leaves nothing behind."""
        prepare(self._run)
        self._watchdog = _start_watchdog(self._run)
        self._note(watchdog=identify(self._watchdog.pid))
        groups = make_groups(self._run.run_id, self.settings.node_names())
        if isinstance(groups, str):
            self._note(unfenced_because=groups)
        else:
            self._note(groups=groups)
        self._start_master()
        self._start_workers(self.settings.node_names(), worker_options)

    def _start_master(self) -> None:
        launch = master_launch(self._run, self._java, use_archive(self._java))
        offset = log_size(launch.log)
        self._start(MASTER, launch)
        deadline = time.monotonic() + START_TIMEOUT_S
        self._note(master=self._await(MASTER, launch.log, offset, MASTER_UP, deadline))
        # Its web page comes last. Where the port is taken it gets another one.
        web = self._await(MASTER, launch.log, offset, WEB_UP, deadline)
        self._note(web=f"http://{MASTER_ADDRESS}:{web}")

    def _start_workers(self, names: Iterable[str], options: tuple[str, ...] | None = None) -> None:
        chosen = use_archive(self._java) if options is None else options
        started = []
        for name in names:
            launch = worker_launch(self._run, self._java, name, chosen)
            offset = log_size(launch.log)
            self._start(name, launch)
            started.append((name, launch.log, offset))
        deadline = time.monotonic() + START_TIMEOUT_S
        for name, log, offset in started:
            self._await(name, log, offset, WORKER_UP, deadline)

    def _start(self, name: str, launch: Launch) -> None:
        with append_private(launch.log) as log:
            child = subprocess.Popen(
                launch.command,
                env=launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._run.folder,
                start_new_session=True,  # Ctrl-C reaches only the owner of the cluster, which ends it in order
                umask=0o077,  # logs, state and shuffle files of nodes and executors are for their owner only
            )
        self._children[name] = child
        leader = identify(child.pid)
        if leader is not None:
            with self._notes:
                self._run = replace(self._run, leaders={**self._run.leaders, name: leader})
                runs.record(self._run)

    def _await(self, name: str, log: Path, offset: int, sign: Pattern[bytes], deadline: float) -> str:
        return await_sign(name, self._children[name], log, offset, sign, deadline)

    def _note(self, **changes: object) -> None:
        with self._notes:
            self._run = replace(self._run, **changes)  # type: ignore[arg-type]  # checked when it is read back
            runs.record(self._run)

    def _reap(self, name: str) -> None:
        child = self._children.pop(name, None)
        if child is not None:
            child.wait()

    def _require_node(self, name: str) -> None:
        names = self.settings.node_names()
        require(name in names, f"there is no node {name!r}; there are {', '.join(names)}")


def start_cluster(
    settings: ClusterSettings | None = None, name: str | None = None, detached: bool = False
) -> EmbeddedCluster:
    """Start a cluster; returns when every node is registered with the master. It ends with this process.

    Raises BadInput, with nothing started, if the settings are impossible; StartFailed, with everything ended, if a
    process does not start.
    """
    return _start(ClusterSettings() if settings is None else settings, name, detached)


def make_archive() -> bool:
    """Make later starts faster (see ``class_archive``). Takes one start and a slow end. False if Java cannot do it."""
    java = find_java()
    options, unfinished = write_archive(java)
    with _start(ClusterSettings(1), None, False, options) as cluster:
        cluster.stop_node("node-1", START_TIMEOUT_S)
    return keep(java, unfinished)


def _start(
    chosen: ClusterSettings, name: str | None, detached: bool, worker_options: tuple[str, ...] | None = None
) -> EmbeddedCluster:
    java = find_java()
    runs.sweep()
    require_free_port(chosen.port)
    cluster = EmbeddedCluster(runs.claim(chosen, name, detached), java)
    try:
        cluster._up(worker_options)
    except BaseException:
        cluster.down()
        raise
    if cluster.run.unfenced_because and chosen.node_cpu is not None:
        warnings.warn(unfenced_warning(cluster.run), RuntimeWarning, stacklevel=3)
    return cluster


def unfenced_warning(run: Run) -> str:
    cores = ", ".join(f"{c:g}" for c in dict.fromkeys(run.settings.node_cpus().values()) if c is not None)
    return f"nodes are not limited to {cores} cores: {run.unfenced_because}"


def _start_watchdog(run: Run) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "barograph.engines.spark.cluster.watchdog",
            str(run.folder),
            str(run.owner.pid),
            str(run.owner.start_ticks),
        ],
        env=python_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
