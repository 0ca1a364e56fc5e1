"""Real clusters: they come up, nodes die and return, and nothing is left of them, whatever ends their owner."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barograph.engines.spark.cluster import embedded, runs
from barograph.engines.spark.cluster.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.cluster.launch import Launch, master_launch
from barograph.engines.spark.cluster.processes import marked, send
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.cluster.start_signs import StartFailed
from barograph.engines.spark.security.ports import ListeningPort, listening
from barograph.engines.spark.security.secret import SECRET_FILE
from barograph.model import BadInput

pytestmark = pytest.mark.spark
DEADLINE_S = 90.0


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in time: {what}"
        time.sleep(0.05)


def nothing_left(run: Run) -> bool:
    return not marked(run.run_id) and not run.folder.exists() and not (run.groups and run.groups.path.exists())


APPLICATION = """
import json, os, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master(sys.argv[1]).getOrCreate()
print(spark.range(1000).selectExpr("sum(id)").first()[0], flush=True)
mask = spark._jsc.hadoopConfiguration().get("fs.permissions.umask-mode")
print(json.dumps([mask, os.getpid(), spark._jvm.java.lang.ProcessHandle.current().pid()]), flush=True)
sys.stdin.read()
"""


@contextmanager
def application(cluster: EmbeddedCluster) -> Iterator[subprocess.Popen[str]]:
    """Another Spark application on the cluster, with nothing but what the documentation says."""
    environment = {**os.environ, "JAVA_HOME": str(cluster.java_home), "PYTHONPATH": os.pathsep.join(sys.path)}
    # As any program of the owner may do: pyspark passes these words to spark-submit.
    environment["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {cluster.run.folder / SECRET_FILE} pyspark-shell"
    with subprocess.Popen(
        [sys.executable, "-c", APPLICATION, cluster.master],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as driver:
        yield driver
        driver.kill()


def assert_closed(said: str) -> None:
    """No port of the driver is on the network, none is that of its web pages, and its files are for their owner."""
    mask, *pids = json.loads(said)
    assert mask == "077"
    ports = listening(pids)
    assert {port.pid for port in ports} == set(pids)
    assert [port for port in ports if not port.loopback] == []
    assert not any(_answers_http(port) for port in ports)


def _answers_http(port: ListeningPort) -> bool:
    with socket.create_connection((port.address.removeprefix("::ffff:"), port.port), timeout=5) as connection:
        connection.settimeout(1)
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(5) == b"HTTP/"
        except OSError:
            return False


def test_a_cluster_from_start_to_end() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a machine without control groups
        cluster = start_cluster(ClusterSettings(2, 0.6, seats=2, memory_mb=512))
    run = cluster.run
    with cluster:
        assert [(n.name, n.address, n.alive, len(n.pids)) for n in cluster.status()] == [
            ("node-1", "127.0.0.2", True, 1),
            ("node-2", "127.0.0.3", True, 1),
        ]
        assert runs.run_of(cluster.master) == run
        with application(cluster) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "499500\n"
            assert_closed(driver.stdout.readline())
            wait_for(lambda: all(len(n.pids) == 2 for n in cluster.status()), "each node has an executor")
            cluster.fence()
            one, two = cluster.status()
            if run.groups is not None:
                assert one.fence_cpu == pytest.approx(0.6)
                inside = (run.groups.node("node-1") / "cgroup.procs").read_text().split()
                assert sorted(map(int, inside)) == sorted(one.pids)
            cluster.kill_node("node-1")
            dead, other = cluster.status()
            assert (dead.alive, dead.pids) == (False, ())
            assert other == two
        with pytest.raises(BadInput, match="node-2 is alive already"):
            cluster.start_node("node-2")
        with pytest.raises(BadInput, match="no node 'node-3'"):
            cluster.kill_node("node-3")
        cluster.start_node("node-1")
        back = cluster.status()[0]
        assert (back.alive, back.fence_cpu) == (True, None)
        cluster.stop_node("node-2")
        assert [n.alive for n in cluster.status()] == [True, False]
    assert nothing_left(run)
    cluster.down()


# Ctrl-C is heard also where the tests run in the background of a shell, which has its background jobs ignore it.
OWNER = """
import signal, sys, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
from barograph.engines.spark.cluster.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.cluster.start_signs import StartFailed
start_cluster(ClusterSettings(1, 0.5), "orphan")
sys.stdin.read()
"""


@contextmanager
def owner() -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()
            started.wait()
            for run in runs.all_runs():
                wait_for(lambda run=run: not run.guarded, "the watchdog is done")  # type: ignore[misc]
            runs.sweep()


def orphan() -> Run | None:
    return next(iter(runs.live_runs()), None)


def orphan_with(*names: str) -> Run:
    """The run of the owner, once these processes of it are started."""

    def ready() -> bool:
        run = orphan()
        return run is not None and all(name in run.leaders for name in names)

    wait_for(ready, f"{names} are started")
    run = orphan()
    assert run is not None
    return run


@pytest.mark.parametrize(
    ("number", "names"),
    [(signal.SIGKILL, ("master", "node-1")), (signal.SIGTERM, ("master",)), (signal.SIGINT, ("master",))],
    ids=["kill -9", "SIGTERM while starting", "Ctrl-C while starting"],
)
def test_nothing_outlives_the_owner(number: signal.Signals, names: tuple[str, ...]) -> None:
    with owner() as started:
        run = orphan_with(*names)
        assert marked(run.run_id)
        started.send_signal(number)
        started.wait()
        wait_for(lambda: nothing_left(run), "nothing is left")


def test_next_start_sweeps_what_outlived_the_watchdog_too() -> None:
    with owner() as started:
        run = orphan_with("master", "node-1")
        assert run.watchdog is not None
        send(run.watchdog, signal.SIGKILL)
        started.kill()
        started.wait()
        wait_for(lambda: not run.guarded, "the watchdog is dead")
        assert marked(run.run_id)
        assert runs.sweep() == ("orphan",)
        assert nothing_left(run)


def test_failed_start_shows_the_log_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: Run, java: object, _archive: object) -> Launch:
        launch = master_launch(run, java)  # type: ignore[arg-type]
        return Launch(("sh", "-c", "echo the dog ate it; exit 3"), launch.environment, launch.log)

    monkeypatch.setattr(embedded, "master_launch", broken)
    with pytest.raises(StartFailed, match=r"master ended with code 3 while starting:\nthe dog ate it"):
        start_cluster(ClusterSettings(1))
    assert runs.all_runs() == ()


def test_bad_input_starts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(BadInput, match="no Java 17 or 21"):
        start_cluster(ClusterSettings(1))
    assert runs.all_runs() == ()


def test_a_cluster_without_fences_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "make_groups", lambda *_: "the reason")
    with pytest.warns(RuntimeWarning, match="not limited to 0.5 cores: the reason") as said:
        cluster = start_cluster(ClusterSettings(1, 0.5))
    with cluster:
        cluster.fence()
        assert [n.alive for n in cluster.status()] == [True]
    assert len(said) == 1
