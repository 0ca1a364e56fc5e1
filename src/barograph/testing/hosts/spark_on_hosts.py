"""A Spark cluster on hosts: a worker on each, the master on the driver's own host.

Workers have Spark under another path than the driver and do not have Barograph at all, so that its jars must reach
executors by ``spark.jars``.
"""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import barograph
from barograph.engines.spark.cluster.java import VECTOR, find_java, pyspark_home, spark_jars
from barograph.engines.spark.cluster.launch import scala_version
from barograph.engines.spark.cluster.start_signs import StartFailed, tail
from barograph.engines.spark.conf import WORKLOADS_JAR, plugin_jar
from barograph.engines.spark.folders import cache_folder
from barograph.engines.spark.security.secret import DAEMONS_FILE, make_secret, read_secret
from barograph.testing.hosts.host import ROOM, SHARED, Host, Sight
from barograph.testing.hosts.network import Hosts, open_hosts

DRIVER = "driver"
SPARK, JAVA = ROOM / "spark", ROOM / "java"
PORT = 7077
START_TIMEOUT_S = 120.0
REGISTERED = "Successfully registered with master"
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m")
_OPENED = ("java.lang", "java.nio", "java.net", "java.util", "java.util.concurrent")


@dataclass
class SparkOnHosts:
    """workers: names of the hosts with a worker. seats: of each executor; there is one on each host.

    java: where hosts have it. sight: of the hosts of workers. own_sight: of the driver's host. is_secret: whether the
    cluster asks for a secret, which ``properties`` has."""

    hosts: Hosts
    workers: tuple[str, ...]
    seats: int
    java: Path
    sight: Sight
    own_sight: Sight
    is_secret: bool

    @property
    def master(self) -> str:
        return f"spark://{self.driver.address}:{PORT}"

    def properties(self) -> Path:
        """For ``--properties-file`` of a program on the driver's host, and there: settings of the session, and the
        secret."""
        folder = self.hosts.home.folder
        secret = read_secret(folder) if self.is_secret else {}
        own = {k: v for k, v in self.session_conf().items() if not k.startswith(("spark.jars", "spark.master")) and v}
        file = self.driver.folder / "tmp" / "cluster.properties"
        file.write_text("".join(f"{key} {value}\n" for key, value in {**own, **secret}.items()))
        return Path("/tmp") / file.name

    def add_worker(self) -> str:
        """A further host with a worker. Returns its name."""
        name = f"host-{len(self.hosts.by_name)}"
        self.hosts.add(name, self.sight)
        self.workers = (*self.workers, name)
        self.start_worker(name)
        _await(self.log(name), REGISTERED)
        return name

    def add_host(self, name: str) -> Host:
        """A further host without a worker, which sees what the driver's does: for what a query reads and writes."""
        return self.hosts.add(name, self.own_sight)

    def start_worker(self, name: str) -> None:
        arguments = ["worker.Worker", "--cores", str(self.seats), "--memory", "2g", *self._secret(name), self.master]
        _daemon(self, name, name, self.java, arguments)

    def start_master(self) -> None:
        _daemon(self, DRIVER, "master", self.java, ["master.Master", "--port", str(PORT), *self._secret(DRIVER)])

    def _secret(self, host: str) -> tuple[str, ...]:
        """The file is in the host's own /tmp."""
        if not self.is_secret:
            return ()
        shutil.copy(self.hosts.home.folder / DAEMONS_FILE, self.hosts.by_name[host].folder / "tmp")
        return ("--properties-file", f"/tmp/{DAEMONS_FILE}")

    @property
    def driver(self) -> Host:
        return self.hosts.by_name[DRIVER]

    def session_conf(self, *jars: Path) -> dict[str, str]:
        """For an application on the driver's host. jars: besides Barograph's own."""
        own = self.driver.address
        return {
            "spark.master": self.master,
            "spark.driver.host": own,
            "spark.driver.bindAddress": own,
            "spark.jars": ",".join(map(str, (plugin_jar(), WORKLOADS_JAR, *jars))),
            "spark.driver.extraClassPath": "",
            "spark.executor.extraClassPath": "",
            "spark.executor.cores": str(self.seats),
            "spark.executor.instances": str(len(self.workers)),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
        }

    def program(self, arguments: Sequence[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """A Python program on the driver's host, with pipes for its standard input and output."""
        known = {
            "PYTHONPATH": str(Path(barograph.__file__).parents[1]), "SPARK_LOCAL_IP": self.driver.address,
            "BAROGRAPH_STATE": "/tmp/state", "BAROGRAPH_CACHE": "/tmp/cache",  # the host's own
        }  # fmt: skip
        return self.driver.start([sys.executable, *arguments], self.log(DRIVER), {**known, **(more or {})}, pipes=True)

    def log(self, name: str) -> Path:
        return self.hosts.home.folder / f"{name}.log"


@contextmanager
def open_spark_on_hosts(
    workers: int = 3, seats: int = 8, programs: Sequence[Path] = (), is_secret: bool = False
) -> Iterator[SparkOnHosts]:
    """programs: files or folders that the driver's host sees where they are. is_secret: only programs with the
    cluster's secret may use it."""
    names = tuple(f"host-{k}" for k in range(1, workers + 1))
    java = find_java()
    elsewhere = {SPARK: pyspark_home(), JAVA: java.runtime}
    package = Path(barograph.__file__).parent
    kept = (Path(sys.prefix), Path(sys.base_prefix), java.home, java.runtime, package.parent, cache_folder(), *programs)
    sight = Sight(elsewhere, covered=(pyspark_home(), package, cache_folder()))
    own_sight = Sight(elsewhere, kept=kept)
    with open_hosts({**dict.fromkeys(names, sight), DRIVER: own_sight}) as hosts:
        home = JAVA if java.home == java.runtime else SHARED / "java"
        cluster = SparkOnHosts(hosts, names, seats, home, sight, own_sight, is_secret)
        if is_secret:
            make_secret(hosts.home.folder)
        if java.home != java.runtime:
            _drop_option(hosts.home.folder / "shared" / "java")
        cluster.start_master()
        _await(cluster.log("master"), "Starting Spark master at")
        for name in names:
            cluster.start_worker(name)
        for name in names:
            _await(cluster.log(name), REGISTERED)
        yield cluster


def _daemon(cluster: SparkOnHosts, host: str, log: str, java: Path, arguments: Sequence[str]) -> None:
    on = cluster.hosts.by_name[host]
    environment = {
        "JAVA_HOME": str(java), "SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": scala_version(),
        "SPARK_LOCAL_IP": on.address, "SPARK_LOCAL_DIRS": "/tmp/spark", "SPARK_WORKER_DIR": "/tmp/work",
    }  # fmt: skip
    path = ":".join(str(SPARK / "jars" / jar.name) for jar in spark_jars())
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    main, *rest = arguments
    ports = ["--host", on.address, "--webui-port", "0"]
    on.start(
        [str(java / "bin" / "java"), *_JVM, *opened, "-cp", path, f"org.apache.spark.deploy.{main}", *ports, *rest],
        cluster.log(log), environment,
    )  # fmt: skip


def _drop_option(home: Path) -> None:
    """A JAVA_HOME for a runtime that does not know the option that Spark's launcher passes; see ``java.py``."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    call = f'exec {shlex.quote(str(JAVA / "bin" / "java"))} "$@"'
    command.write_text(f'#!/bin/sh\nfor a do shift; [ "$a" = {VECTOR} ] || set -- "$@" "$a"; done\n{call}\n')
    command.chmod(0o755)


def _await(log: Path, sign: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while sign not in log.read_text(errors="replace"):
        if time.monotonic() > deadline:
            raise StartFailed(f"{log.stem} was not up after {START_TIMEOUT_S:g} s:\n{tail(log)}")
        time.sleep(0.05)
