"""Another user of the machine against a running cluster with a query: no port and no file gives anything, and nothing
that is sent to a port ends the query."""

import base64
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from barograph.engines.spark.cluster.node_status import option_of
from barograph.engines.spark.cluster.processes import marked
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.engines.spark.security.ports import listening
from barograph.engines.spark.security.secret import DAEMONS_FILE, SECRET_FILE, read_secret
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = pytest.mark.spark
ATTACKS = Path(__file__).with_name("attacks.py")
SOURCES = Path(__file__).parents[4]
EPOCHS = 4
NO_ENDPOINT = "Cannot find endpoint"


@pytest.fixture(autouse=True)
def clusters_folder(shared_stage: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared cluster was started with another state folder than a single test has."""
    options = shared_stage.spark.sparkContext.getConf().get("spark.executor.extraJavaOptions") or ""
    found = re.search(r"-Djava\.io\.tmpdir=(\S+)/runs/[^/]+/tmp", options)
    assert found
    monkeypatch.setenv(STATE_VARIABLE, found[1])


@pytest.fixture(scope="module")
def running(shared_stage: LocalCluster) -> Iterator[RunningQuery]:
    with shared_stage.query(name="guarded", epoch_s=2.0) as counting:
        yield counting


class Attacker:
    """A program of another user. Words go in as they are known; ``end`` returns what it got."""

    def __init__(self) -> None:
        if os.getuid() != 0:
            pytest.skip("only root can start a program as another user")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(ATTACKS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
        )

    def give(self, **what: str | int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        said, _ = self._process.communicate(timeout=120)
        found: dict[str, Any] = json.loads(said)
        assert found["uid"] != os.getuid()
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def attacker() -> Iterator[Attacker]:
    made = Attacker()
    try:
        yield made
    finally:
        made.kill()


def java(stage: LocalCluster) -> Any:
    """The classes of the driver's JVM."""
    return stage.spark._jvm


def driver_pids(stage: LocalCluster) -> tuple[int, ...]:
    return os.getpid(), int(java(stage).java.lang.ProcessHandle.current().pid())


def every_pid(stage: LocalCluster) -> tuple[int, ...]:
    return (*driver_pids(stage), *(process.pid for process in marked(stage.cluster.run.run_id)))


def test_no_port_gives_a_row_runs_a_call_or_ends_the_query(shared_stage: LocalCluster, running: RunningQuery) -> None:
    first = running.epoch()
    tried: set[tuple[str, int]] = set()
    with attacker() as stranger:
        # The shuffle's ports are new in each epoch, and a stranger may come before the reader does.
        def attacked() -> bool:
            attack_new(shared_stage, stranger, tried)
            return running.epoch() >= first + EPOCHS

        running.settle(attacked, 120, 0.01)
        found = stranger.end()
    assert len(tried) > 4 * EPOCHS
    connected = [port for port in found["ports"] if port["connected"]]
    assert len(connected) > 2 * EPOCHS
    assert [port for port in connected if port["rows"] or port["java"]] == []
    pages = [port for port in connected if port["http"]]
    assert len(pages) >= 4  # of the master and three workers
    assert [port for port in pages if any("403" not in status for status in port["http"])] == []
    out, then = running.output(), running.epoch()
    running.settle(lambda: running.output() > out and running.epoch() > then + 1)


def attack_new(stage: LocalCluster, stranger: Attacker, tried: set[tuple[str, int]]) -> None:
    for port in listening(every_pid(stage)):
        place = ("127.0.0.1" if port.address in ("::", "0.0.0.0") else port.address, port.port)
        if place not in tried:
            tried.add(place)
            stranger.give(address=place[0], port=place[1])


def knock(stage: LocalCluster, where: str, endpoint: str, secret: str) -> str:
    host, port = where.rsplit(":", 1)
    return str(java(stage).org.apache.spark.barograph.testing.Stranger.knock(host, int(port), endpoint, secret))


def test_only_the_secret_opens_master_and_driver(shared_stage: LocalCluster) -> None:
    secret = read_secret(shared_stage.cluster.run.folder)["spark.authenticate.secret"]
    conf = shared_stage.spark.sparkContext.getConf()
    driver = f"{conf.get('spark.driver.host')}:{conf.get('spark.driver.port')}"
    for where, endpoint in ((shared_stage.cluster.master.removeprefix("spark://"), "Master"),
                            (driver, "CoarseGrainedScheduler")):  # fmt: skip
        assert knock(shared_stage, where, endpoint, "") != ""
        assert knock(shared_stage, where, endpoint, "0" * len(secret)) != ""
        assert knock(shared_stage, where, endpoint, secret) == ""


def test_no_port_takes_a_stranger_for_one_of_its_own(shared_stage: LocalCluster, running: RunningQuery) -> None:
    """Every port of every process: one whose RPC answers a stranger would say that it has no such endpoint."""
    secret = read_secret(shared_stage.cluster.run.folder)["spark.authenticate.secret"]
    ports = {
        f"{'127.0.0.1' if p.address in ('::', '0.0.0.0') else p.address}:{p.port}"
        for p in listening(every_pid(shared_stage))
    }
    assert len(ports) >= 10  # RPC and pages of the master and three workers, RPC and blocks of the driver

    def knocks(where: str) -> list[str]:
        return [knock(shared_stage, where, "Worker", given) for given in ("", "0" * len(secret), secret)]

    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(ports, pool.map(knocks, ports), strict=True))
    spoken = {where for where, (*_, own) in answers.items() if own == "" or NO_ENDPOINT in own}
    assert len(spoken) >= 5, answers  # the RPC of master, workers and driver, which know the owner
    let_in = {where: said for where, (*said, _) in answers.items() if any(not s or NO_ENDPOINT in s for s in said)}
    assert let_in == {}
    assert running.query.isActive


def token(key: str) -> str:
    """A signed token for the web pages, which only the owner of the key can make."""
    parts = [base64.urlsafe_b64encode(p).rstrip(b"=") for p in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"owner"}')]
    signature = hmac.new(base64.urlsafe_b64decode(key), b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def test_web_pages_are_for_the_owner_only(shared_stage: LocalCluster) -> None:
    run = shared_stage.cluster.run
    ports = {"master": run.web.rsplit(":", 1)[1]}
    for name in run.settings.node_names():
        log = (run.folder / "logs" / f"{name}.log").read_text()
        ports[name] = re.findall(r"Successfully started service 'WorkerUI' on port (\d+)", log)[-1]
    hosts = {"master": "127.0.0.1", **run.settings.addresses()}
    key = dict(line.split(" ", 1) for line in (run.folder / DAEMONS_FILE).read_text().splitlines())[
        "spark.org.apache.spark.ui.JWSFilter.param.secretKey"
    ]
    with attacker() as stranger:
        for name, port in ports.items():
            stranger.give(address=hosts[name], page=port, token="")
            stranger.give(address=hosts[name], page=port, token=token(base64.urlsafe_b64encode(b"x" * 32).decode()))
        stranger.give(address=hosts["master"], page=ports["master"], token=token(key))
        found = stranger.end()["pages"]
    let_in = [statuses for _, _, statuses in found if any("200" in s for s in statuses)]
    assert len(found) == 2 * len(ports) + 1
    assert len(let_in) == 1  # the owner
    refused = {status for _, _, statuses in found if statuses not in let_in for status in statuses}
    assert refused == {"HTTP/1.1 403"}


def opened_by(pids: Iterable[int]) -> set[Path]:
    """Files and folders that processes have open now, but for what is installed and what the kernel has, and for the
    file to which the shell of these tests writes."""
    installed = (sys.prefix, sys.base_prefix, "/usr", "/lib", "/etc", "/proc", "/sys", "/dev", str(SOURCES))
    found = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(link.readlink())
    for number in (1, 2):
        with suppress(OSError):
            found.discard(Path(f"/proc/{os.getppid()}/fd/{number}").readlink())
    return {p for p in found if p.is_absolute() and p.exists() and not str(p).startswith(installed)}


def test_no_file_can_be_read_or_written(shared_stage: LocalCluster, running: RunningQuery) -> None:
    """Every file of the cluster and of the checkpoint, every file that a process of it has open, and what the kernel
    shows of those processes."""
    run, pids = shared_stage.cluster.run, every_pid(shared_stage)
    endpoint = shared_stage.supervisor.serve()
    places = {run.folder, *run.folder.rglob("*"), running.checkpoint, *running.checkpoint.rglob("*"), endpoint.path}
    assert {run.folder / SECRET_FILE, run.folder / DAEMONS_FILE, run.folder / "run.json"} <= places
    assert any("/work/" in str(p) for p in places) and any("/state/" in str(p) for p in places)
    places |= opened_by(pids)
    places |= {Path(f"/proc/{pid}/{name}") for pid in pids for name in ("environ", "mem", "maps", "fd", "cwd")}
    # A link leads to what is installed; what it names is tried itself if it is one of ours.
    tried = {p for p in places if not p.is_symlink() or str(p).startswith("/proc/")}
    with attacker() as stranger:
        for place in tried:
            stranger.give(path=str(place))
        found = dict(stranger.end()["paths"])
    assert len(found) == len(tried) > 100
    assert {place: can for place, can in found.items() if can} == {}


def test_what_is_created_is_for_its_owner_only(shared_stage: LocalCluster, running: RunningQuery) -> None:
    folders = (shared_stage.cluster.run.folder, running.checkpoint)
    deadline = time.monotonic() + 30
    while not list((running.checkpoint / "commits").glob("[0-9]*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    seen = {}
    for place in (p for folder in folders for p in folder.rglob("*")):
        try:
            seen[str(place)] = place.lstat().st_mode & 0o077
        except FileNotFoundError:  # files of a running query come and go
            continue
    assert len(seen) > 20
    assert {place: oct(mode) for place, mode in seen.items() if mode and not Path(place).is_symlink()} == {}


@pytest.mark.usefixtures("running")
def test_no_secret_is_on_a_command_line_or_in_a_log(shared_stage: LocalCluster) -> None:
    run = shared_stage.cluster.run
    settings = {**read_secret(run.folder)}
    settings |= dict(line.split(" ", 1) for line in (run.folder / DAEMONS_FILE).read_text().splitlines())
    secrets = {value.encode() for key, value in settings.items() if "secret" in key.lower()}
    assert len(secrets) == 2
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in every_pid(shared_stage)]
    assert len([c for c in commands if b"org.apache.spark" in c]) >= 8  # driver, master, three workers and executors
    assert [c for c in commands if any(secret in c for secret in secrets)] == []
    executors = [p for p in marked(run.run_id) if option_of(p, "--executor-id")]
    environments = [Path(f"/proc/{p.pid}/environ").read_bytes() for p in executors]
    assert all(any(secret in found for secret in secrets) for found in environments)  # Spark hands it over there
    logs = [p for p in run.folder.rglob("*") if p.is_file() and (p.suffix == ".log" or p.name in ("stderr", "stdout"))]
    assert len(logs) >= 4 + 2 * len(executors)
    assert [log for log in logs if any(secret in log.read_bytes() for secret in secrets)] == []
    shown = shared_stage.spark.sql("SET -v").collect() + shared_stage.spark.sql("SET").collect()
    assert [row for row in shown if any(secret.decode() in str(row) for secret in secrets)] == []


def test_the_query_has_counted_every_row_once(running: RunningQuery) -> None:
    assert running.verdict().exact
