"""An application in Scala with ``transformWithState`` under ``submit --class``: seen, steered, called again."""

import contextlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.submit.test_submitted_script import ROOT, Submitted, decisions, submitted, topologies

from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.processes import kill, python_environment
from barograph.engines.spark.cluster.runs import live_runs
from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.model import Load
from barograph.model.loads.schedule import encode

SCALA = Path(__file__).with_name("scala")
LOAD = "ramp 0s=300 30s=300 40s=3000 90s=3000 100s=300 900s=300"


def compiled(folder: Path) -> Path:
    """The application as a jar, by the compiler that compiles the plug-in."""
    spec = importlib.util.spec_from_file_location("compile", ROOT / "jvm" / "compile.py")
    assert spec is not None and spec.loader is not None
    compiler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiler)
    jar = folder / "counts.jar"
    compiler._compile_jar("application", [SCALA / "Counts.scala"], jar, [])
    return jar


@pytest.mark.spark
@pytest.mark.slow
def test_an_application_in_scala_is_seen_steered_and_called_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    segments = encode(Load.parse(LOAD).schedule(900.0).segments)
    words = ["--workloads", "--act", "--nodes", "2", "--conf", "spark.sql.shuffle.partitions=2"]
    words += ["--class", "counts.Main", str(compiled(tmp_path)), str(checkpoint), segments]

    def committed() -> int:
        return last_committed_epoch(checkpoint) or 0

    def applied() -> list[dict[str, Any]]:
        return [d for d in decisions(capsys) if d.get("outcome") == "applied"]

    with submitted(tmp_path, *words) as program:
        program.settle(lambda: committed() > 0 and bool(topologies(capsys)), 600.0)
        (topology,) = topologies(capsys)
        assert not topology["supervised"], "its handle is Spark's own"
        assert topology["in_rows_s"] > 0
        program.settle(lambda: bool(applied()), 300.0)
        again = "counts.Main is called again"
        lose_until(program, again, capsys)
        before = committed()
        program.settle(lambda: committed() > before + 2, 240.0)
        assert "did not get in" not in program.said
        assert program.end() != 0
    assert live_runs() == ()
    done = subprocess.run(
        [sys.executable, str(SCALA / "counted_words.py"), str(checkpoint)], env=python_environment(),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert verdict["rows"] > 1000
    assert verdict["wrong"] == {}


def lose_until(program: Submitted, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends executors that run the query, until the program says so; between two epochs none runs it."""
    (run,) = live_runs()

    def one_more_ended() -> bool:
        by_node = topologies(capsys)[0]["by_node"]
        used = next((node for node, instances in by_node.items() if instances), None)
        executors = executors_of(run, used).values() if used is not None else ()
        kill(executors)
        with contextlib.suppress(TimeoutError):
            program.settle(lambda: said in program.said, 20.0)
        return said in program.said

    program.settle(one_more_ended)
