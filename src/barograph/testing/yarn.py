"""YARN on this machine, for tests: a resource manager and node managers, each a process with a loopback address.

They are Hadoop's own daemons, from the jar of its mini cluster. Each node manager has an address of its own, so that
Spark takes them for different hosts. Containers are plain processes of this user, without limits of memory or CPU.
Everything ends with the block, or with the process that started it.
"""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any

from barograph.engines.spark.cluster.java import find_java, java_home, pyspark_home, spark_jars
from barograph.engines.spark.cluster.processes import NODE_MARK, Process, kill, marked
from barograph.engines.spark.cluster.start_signs import StartFailed, tail
from barograph.engines.spark.folders import cache_folder
from barograph.guardian import Guarded, guarded
from barograph.maven import Ivy, fetch, pinned

START_TIMEOUT_S = 240.0
_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m",
        "--add-opens=java.base/java.lang=ALL-UNNAMED")  # fmt: skip
_JARS = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j", "commons-logging", "jcl-over", "snappy")
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


class YarnCluster:
    """Made by ``start_yarn``. nodes: the address of each node manager, which is its host name too."""

    def __init__(self, home: Guarded, nodes: int, cores: int, memory_mb: int) -> None:
        self._home = home
        self.nodes = tuple(f"127.0.0.{21 + n}" for n in range(nodes))
        jars = fetch(pinned("yarn-cluster"), cache_folder() / "jars", _ivy)
        self._class_path = [*jars, *(jar for jar in spark_jars() if jar.name.startswith(_JARS))]
        ports = _free_ports(5)
        self._web = f"127.0.0.1:{ports[0]}"
        names = ("webapp.address", "address", "scheduler.address", "resource-tracker.address", "admin.address")
        self._shared = {
            **{f"yarn.resourcemanager.{n}": f"127.0.0.1:{p}" for n, p in zip(names, ports, strict=True)},
            "yarn.resourcemanager.scheduler.class":
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
            "hadoop.tmp.dir": str(home.folder / "tmp"),
            "yarn.nodemanager.resource.memory-mb": str(memory_mb),
            "yarn.nodemanager.resource.cpu-vcores": str(cores),
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.scheduler.maximum-allocation-vcores": str(cores),
            # The limits of memory are of no use here, and a disk that is nearly full is not this test's matter.
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.enable": "false",
        }  # fmt: skip
        self._configure("conf", {})

    def environment(self) -> dict[str, str]:
        """By which spark-submit finds the cluster."""
        return {"HADOOP_CONF_DIR": str(self._home.folder / "conf")}

    def session_conf(self) -> dict[str, str]:
        """Spark is not uploaded: every node is this machine."""
        return {
            "spark.yarn.jars": f"local:{pyspark_home() / 'jars'}/*",
            "spark.yarn.stagingDir": f"file://{self._home.folder / 'staging'}",
            "spark.yarn.am.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            # Spark starts the pages of a driver while its master on YARN adds a filter to them: on a busy machine a
            # session fails to start with a ConcurrentModificationException.
            "spark.ui.enabled": "false",
        }

    def start(self) -> None:
        self._launch("manager", _MANAGER, "conf", {})
        self._await(lambda: self._ask("info") is not None, "manager")
        for node in self.nodes:
            self.start_node(node)
        self._await(lambda: len(self.live_nodes()) == len(self.nodes), *self.nodes)

    def start_node(self, node: str) -> None:
        services = ("", "localizer.", "webapp.", "collector-service.")
        own = {f"yarn.nodemanager.{name}address": f"{node}:0" for name in services}
        mark = {**self._home.mark, NODE_MARK: node}
        self._configure(f"conf-{node}", {
            **own,
            "yarn.nodemanager.bind-host": node,  # else it is known by the machine's own name
            "yarn.nodemanager.local-dirs": str(self._home.folder / node / "local"),
            "yarn.nodemanager.log-dirs": str(self._home.folder / node / "logs"),
            # By the mark all containers are found, whatever becomes of the node manager.
            "yarn.nodemanager.admin-env": ",".join(f"{key}={value}" for key, value in mark.items()),
        })  # fmt: skip
        self._launch(node, _NODE, f"conf-{node}", mark)

    def live_nodes(self) -> list[str]:
        found = self._ask("nodes?states=RUNNING") or {}
        return [n["nodeHostName"] for n in (found.get("nodes") or {}).get("node", ())]

    def executors(self, node: str) -> list[Process]:
        """Processes of Spark executors in the node's containers."""
        return [
            p for p in marked(self._home.folder.name, node) if _EXECUTOR in _command(p) and b"bash" not in _command(p)
        ]

    def lose_containers(self, node: str) -> int:
        """SIGKILL to the node's executors. Returns how many there were."""
        found = self.executors(node)
        kill(found)
        return len(found)

    def logs(self, most: int = 3000) -> str:
        """The ends of what containers and daemons wrote, for a failed test."""
        files = [*self._home.folder.glob("*/logs/**/stderr"), *self._home.folder.glob("*.log")]
        return "\n".join(f"== {f}\n{f.read_text(errors='replace')[-most:]}" for f in files)

    def _configure(self, folder: str, more: Mapping[str, str]) -> None:
        where = self._home.folder / folder
        where.mkdir(mode=0o700)
        text = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>\n"
            for key, value in {**self._shared, **more}.items()
        )
        (where / "yarn-site.xml").write_text(f"<configuration>\n{text}</configuration>\n")
        (where / "core-site.xml").write_text(
            "<configuration><property><name>fs.defaultFS</name><value>file:///</value></property></configuration>\n"
        )
        (where / "log4j2.properties").write_text(_LOGGING)

    def _launch(self, name: str, main: str, conf: str, mark: Mapping[str, str]) -> None:
        path = ":".join(map(str, [self._home.folder / conf, *self._class_path]))
        environment = {"PATH": os.environ["PATH"], "HOME": str(Path.home()), "JAVA_HOME": str(java_home())}
        with (self._home.folder / f"{name}.log").open("ab") as log:
            subprocess.Popen(
                [str(find_java().command), *_JVM, "-cp", path, main], env={**environment, **self._home.mark, **mark},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._home.folder, start_new_session=True,
            )  # fmt: skip

    def _await(self, condition: Any, *names: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                said = "\n".join(tail(self._home.folder / f"{name}.log") for name in names)
                raise StartFailed(f"YARN did not start:\n{said}")
            time.sleep(0.2)

    def _ask(self, what: str) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"http://{self._web}/ws/v1/cluster/{what}", timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None


@contextmanager
def start_yarn(nodes: int = 2, cores: int = 16, memory_mb: int = 8192) -> Iterator[YarnCluster]:
    """cores, memory_mb: of each node, as YARN counts them; this scheduler goes by memory alone. FetchFailed where its
    jars cannot be had."""
    with guarded("yarn") as home:
        cluster = YarnCluster(home, nodes, cores, memory_mb)
        cluster.start()
        yield cluster


def _ivy() -> Ivy:
    return Ivy.among(find_java().command, spark_jars())


def _command(process: Process) -> bytes:
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _free_ports(count: int) -> Sequence[int]:
    sockets = [socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
