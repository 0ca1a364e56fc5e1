"""An unchanged script on YARN under ``submit --act``: placed, scaled, limited, and it outlives a container."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fetched import needs_fetched
from tests.submit.test_submitted_script import SCRIPT, VERDICT, decisions, submitted

from barograph.cli.main import main
from barograph.engines.spark.cluster.processes import python_environment
from barograph.model import Load
from barograph.model.loads.schedule import encode
from barograph.testing.yarn import YarnCluster, start_yarn

EXECUTORS = 3  # on two nodes, so that two of them share a node and have a slot each
LOAD = "ramp 0s=1000 40s=1000 50s=5000 100s=5000 110s=1000 1500s=1000"


@pytest.fixture
def yarn() -> Iterator[YarnCluster]:
    with needs_fetched(), start_yarn(nodes=2) as cluster:
        yield cluster


def status(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["status", "--format", "json"]) == 0
    return next(iter(json.loads(capsys.readouterr().out)), {})


def topology(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return next(iter(status(capsys).get("topologies", ())), {})


@pytest.mark.spark
@pytest.mark.slow
def test_an_unchanged_script_on_yarn(
    yarn: YarnCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in yarn.environment().items():
        monkeypatch.setenv(name, value)
    checkpoint = tmp_path / "checkpoint"
    # No node is released: how many containers there are is YARN's matter alone.
    settings = {
        **yarn.session_conf(),
        "spark.sql.shuffle.partitions": "2",
        "spark.barograph.nodes.releaseAfter": "never",
    }
    words = ["--workloads", "--master", "yarn", "--act", "--num-executors", str(EXECUTORS), "--executor-cores", "6"]
    words += [
        "--executor-memory",
        "640m",
        *(w for key, value in settings.items() for w in ("--conf", f"{key}={value}")),
    ]
    segments = encode(Load.parse(LOAD).schedule(1500.0).segments)

    def done(what: str) -> list[dict[str, Any]]:
        return [d for d in decisions(capsys) if d.get("outcome") == "applied" and d[what]]

    with submitted(tmp_path, *words, str(SCRIPT), str(checkpoint), segments) as program:
        try:
            program.settle(lambda: bool(topology(capsys)), 500.0)
            seen = status(capsys)
            assert seen["master"] == "yarn"
            assert {node["name"] for node in seen["nodes"]} <= set(yarn.nodes), "a node is a node manager's host"
            program.settle(lambda: bool(done("rescales")), 400.0)
            program.settle(lambda: bool(done("moves")), 400.0)
            program.settle(lambda: any(topology(capsys)["by_node"].values()), 60.0)
            assert all("cooperative" in node["enforces"] for node in status(capsys)["nodes"] if node["executors"])
            before = topology(capsys)
            used = next(node for node, instances in before["by_node"].items() if instances)
            assert yarn.lose_containers(used) > 0
            program.settle(lambda: len(topology(capsys).get("restarts", ())) > len(before["restarts"]), 120.0)
            # YARN starts another container for it, and the query runs on.
            program.settle(lambda: sum(len(yarn.executors(node)) for node in yarn.nodes) == EXECUTORS, 120.0)
            epoch = topology(capsys).get("epoch") or 0
            program.settle(lambda: (topology(capsys).get("epoch") or 0) > epoch + 2, 180.0)
            assert "did not get in" not in program.said
            program.end()
        except BaseException:
            sys.stderr.write(yarn.logs())
            raise
    checked = subprocess.run(
        [sys.executable, str(VERDICT), str(checkpoint)], env=python_environment(), capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr[-3000:]
    verdict = json.loads(checked.stdout.splitlines()[-1])
    assert verdict["rows"] > 50_000
    assert verdict["wrong"] == {}
