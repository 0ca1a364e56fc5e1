"""Another user of the machine against the files of a running cluster with a query: none can be read or changed."""

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.engines.spark.security.another_user import entered, every_pid, tried_by_another_user

from barograph.config import resolve
from barograph.control.attach import attach
from barograph.engines.spark.cluster.node_status import option_of
from barograph.engines.spark.cluster.processes import marked
from barograph.engines.spark.security.driver_uses import asked_drivers
from barograph.engines.spark.security.exposure import exposed
from barograph.engines.spark.security.secret import DAEMONS_FILE, SECRET_FILE, read_secret
from barograph.priority.service import PriorityService
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("state")]
SOURCES = Path(__file__).parents[4]


def opened_by(pids: Iterable[int]) -> set[Path]:
    """Files and folders that processes have open now, but for what is installed, what the kernel has, and what these
    tests were started with."""
    installed = (sys.prefix, sys.base_prefix, "/usr", "/lib", "/etc", "/proc", "/sys", "/dev", str(SOURCES))
    found = {p for pid in pids for p in opened(pid)} - opened(os.getppid())
    return {p for p in found if p.is_absolute() and p.exists() and not str(p).startswith(installed)}


def opened(pid: int) -> set[Path]:
    found = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(link.readlink())
    return found


def test_no_file_can_be_read_or_changed(shared_stage: LocalCluster, running: RunningQuery, state: Path) -> None:
    """Every file of the cluster and of the checkpoint, every file that a process of it has open, and what the kernel
    shows of those processes."""
    run, pids = shared_stage.cluster.run, every_pid(shared_stage)
    endpoint = shared_stage.supervisor.serve()
    places = {run.folder, *run.folder.rglob("*"), running.checkpoint, *running.checkpoint.rglob("*"), endpoint.path}
    assert {run.folder / SECRET_FILE, run.folder / DAEMONS_FILE, run.folder / "run.json"} <= places
    assert any("/work/" in str(p) for p in places) and any("/state/" in str(p) for p in places)
    places |= opened_by(pids)
    places |= {Path(f"/proc/{pid}/{name}") for pid in pids for name in ("environ", "mem", "maps", "fd", "cwd")}
    assert len(places) > 100
    with entered(state, running.checkpoint):
        assert tried_by_another_user(places) == {}


def recorded(history: Path) -> list[Path]:
    return list(history.glob("cycle*.parquet"))


@pytest.mark.usefixtures("running")
def test_no_history_and_no_priority_can_be_read_or_changed(
    shared_stage: LocalCluster, open_folder: Path, state: Path
) -> None:
    """A history that a controller makes where others can enter, and the priorities of the driver."""
    supervisor = shared_stage.supervisor
    history = open_folder / "history"
    chosen = resolve(mapping={"policy": "even", "mode": "advise", "cycle": "0.5s", "history": str(history)})
    with PriorityService(supervisor), attach(supervisor.serve().path, chosen):
        deadline = time.monotonic() + 60
        kept: list[Path] = []
        while {p.suffix for p in kept} != {".json", ".lock"} or not recorded(history):
            assert time.monotonic() < deadline, (kept, recorded(history))
            time.sleep(0.05)
            kept = [p for p in supervisor.folder().iterdir() if "priorities-" in p.name]
        assert Path(asked_drivers()[0].histories[0]) == history, "the doctor knows of it"
        with entered(state):
            assert tried_by_another_user([history, *history.rglob("*"), supervisor.folder(), *kept]) == {}
        mine = f" of driver {os.getpid()}"
        told = {f.name.removesuffix(mine): f for f in exposed() if f.name.endswith(mine)}
        assert (told["history"].ok, told["checkpoint"].ok) == (True, True)
        history.chmod(0o755)
        (history / "note").touch()
        (history / "note").chmod(0o644)
        (open_now,) = [f for f in exposed() if f.name == f"history{mine}"]
        assert not open_now.ok


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
