"""``barograph cluster``: the cluster outlives the command and ends with ``down``; bad input gives one line."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark.cluster import detached, runs
from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.processes import NODE_MARK, RUN_MARK, identify, is_stopped, kill, marked
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import STATE_VARIABLE
from tests.polling import until


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    yield
    for run in runs.all_runs():
        detached.down(run.name)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["up", "--nodes", "0"], "nodes"),
        (["up", "--seats", "0"], "seats"),
        (["up", "--node-cpu", "-1"], "--node-cpu must be"),
        (["up", "--nodes", "2", "--node-cpu", "0.5,0.5,0.5"], "3 values for 2 nodes"),
        (["up", "--executors", "0"], "executors"),
        (["up", "--memory", "1"], "memory"),
        (["up", "--port", "PORT"], "port"),
        (["up", "--name", "a/b"], "name"),
        (["down", "missing"], "missing"),
    ],
)
def test_bad_input(arguments: list[str], culprit: str, taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", *(a.replace("PORT", str(taken_port)) for a in arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert culprit in said.err
    assert runs.all_runs() == ()


def test_nothing_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status"]) == main(["cluster", "down"]) == 0
    assert capsys.readouterr().out == "no cluster is up\nnothing was up\n"


def test_what_is_stopped_is_shown_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster of two processes that do nothing."""

    def shown() -> tuple[str, str]:
        assert main(["cluster", "status"]) == 0
        master, node = capsys.readouterr().out.splitlines()
        return master, node

    run = runs.claim(ClusterSettings(1), "mine")
    environment = {**os.environ, RUN_MARK: run.run_id}
    with ExitStack() as ending:
        ending.callback(shutil.rmtree, run.folder)  # the owner of what has a record is ended at the end: this process
        leaders = {}
        for name, more in ((MASTER, {}), ("node-1", {NODE_MARK: "node-1"})):
            child = ending.enter_context(subprocess.Popen(["sleep", "600"], env={**environment, **more}))
            ending.callback(child.kill)
            found = identify(child.pid)
            assert found is not None
            leaders[name] = found
        runs.record(replace(run, leaders=leaders, master="spark://127.0.0.1:1", web="http://127.0.0.1:2"))
        assert shown()[0] == "mine  spark://127.0.0.1:1  http://127.0.0.1:2"
        assert "node-1  127.0.0.2  alive" in shown()[1]
        for leader in leaders.values():
            os.kill(leader.pid, signal.SIGSTOP)
            until(lambda leader=leader: is_stopped(leader))  # type: ignore[misc]  # bound at once
        assert shown()[0].endswith("  MASTER STOPPED")
        assert "node-1  127.0.0.2  stopped" in shown()[1]
        kill(leaders.values())
        assert shown()[0].endswith("  MASTER DEAD")
        assert "node-1  127.0.0.2  dead" in shown()[1]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_up_status_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "up", "--nodes", "1", "--node-cpu", "0.5", "--name", "mine"]) == 0
    master = capsys.readouterr().out.strip()
    assert master.startswith("spark://127.0.0.1:")
    assert main(["cluster", "status", "--format", "json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["master"], shown["nodes"][0]["alive"]) == ("mine", master, True)
    assert main(["cluster", "status"]) == 0
    assert "node-1  127.0.0.2  alive" in capsys.readouterr().out
    assert main(["cluster", "up", "--nodes", "1", "--name", "mine"]) == 2
    assert "mine is up already" in capsys.readouterr().err
    (run,) = runs.all_runs()
    assert main(["cluster", "down"]) == 0
    assert capsys.readouterr().out == "ended mine\n"
    assert marked(run.run_id) == ()
    assert runs.all_runs() == ()
    assert not (run.groups and run.groups.path.exists())
