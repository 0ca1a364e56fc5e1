"""Which processes of this user listen: Spark's, the Python of drivers and executors, brokers and their feeds.

Read from /proc. Told by their command lines and by which process started which.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.security.ports import ListeningPort, listening

MASTER, WORKER, EXECUTOR, DRIVER = "master", "worker", "executor", "driver"
LAUNCHER = "executor launcher"
BROKER, FEED = "broker", "feed"
PYTHON_OF_DRIVER, PYTHON_OF_EXECUTOR = "Python of driver", "Python of executor"
DRIVER_WRAPPER = "org.apache.spark.deploy.worker.DriverWrapper"  # a driver that a worker runs
_PROC = Path("/proc")
_ROLES = {
    "org.apache.spark.deploy.master.Master": MASTER,
    "org.apache.spark.deploy.worker.Worker": WORKER,
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": EXECUTOR,
    "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend": EXECUTOR,
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend": EXECUTOR,
    "org.apache.spark.deploy.SparkSubmit": DRIVER,
    DRIVER_WRAPPER: DRIVER,
    "org.apache.spark.deploy.yarn.ApplicationMaster": DRIVER,
    # Asks YARN for executors, for a driver elsewhere.
    "org.apache.spark.deploy.yarn.ExecutorLauncher": LAUNCHER,
    "kafka.Kafka": BROKER,
    "org.apache.spark.barograph.source.TopicFeed": FEED,
}
_PLUGIN = "barograph-plugin"


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """A process of this user, and what it listens on. words: its command line. guarded: whether it has the plug-in,
    whose shuffle gives rows only to readers that prove themselves. folder: in which it runs."""

    pid: int
    role: str
    words: tuple[str, ...]
    ports: tuple[ListeningPort, ...]
    guarded: bool = False
    folder: Path = Path("/")


@dataclass(frozen=True, slots=True)
class _Seen:
    """program: the name of its file."""

    program: str
    words: tuple[str, ...]
    parent: int

    @property
    def role(self) -> str:
        """By its main class."""
        return next((_ROLES[word] for word in self.words if word in _ROLES), "") if self.program == "java" else ""


def own_processes() -> Iterator[OwnProcess]:
    """Those that have a role here, also where they listen on nothing."""
    seen = dict(_seen())
    roles = {pid: seen[pid].role or _role_of_python(pid, seen) for pid in sorted(seen)}
    ports = defaultdict(list)
    for port in listening([pid for pid, role in roles.items() if role]):
        ports[port.pid].append(port)
    for pid, role in roles.items():
        with contextlib.suppress(OSError):  # it has ended
            if role:
                folder = (_PROC / str(pid) / "cwd").readlink()
                words = seen[pid].words
                yield OwnProcess(pid, role, words, tuple(ports[pid]), _has_plugin(pid, words), folder)


def _seen() -> Iterator[tuple[int, _Seen]]:
    for entry in _PROC.iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if entry.name.isdecimal() and entry.stat().st_uid == os.getuid():
                words = tuple(w.decode(errors="replace") for w in (entry / "cmdline").read_bytes().split(b"\0") if w)
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), _Seen((entry / "exe").readlink().name, words, parent)


def _role_of_python(pid: int, seen: Mapping[int, _Seen]) -> str:
    """A driver's JVM is started by its Python, or, by spark-submit, starts it."""
    if not seen[pid].program.startswith("python"):
        return ""
    parent = seen.get(seen[pid].parent)
    if parent is not None and parent.role == EXECUTOR:
        return PYTHON_OF_EXECUTOR
    is_started = parent is not None and parent.role == DRIVER
    starts = any(other.parent == pid and other.role == DRIVER for other in seen.values())
    return PYTHON_OF_DRIVER if is_started or starts else ""


def _has_plugin(pid: int, words: tuple[str, ...]) -> bool:
    """By its class path, or among its open files where the jar was sent to it."""
    if any(_PLUGIN in word for word in words):
        return True
    for descriptor in (_PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            if _PLUGIN in str(descriptor.readlink()):
                return True
    return False
