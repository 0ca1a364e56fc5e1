"""``barograph cluster``: the cluster outlives the command and ends with ``down``; bad input gives one line."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark.cluster import detached, runs
from barograph.engines.spark.cluster.processes import marked
from barograph.engines.spark.folders import STATE_VARIABLE


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
