"""The example: a query as in Spark's guide, with at most five lines added, that runs and is seen from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from barograph.cli.main import main
from barograph.engines.spark.cluster.java import java_home, pyspark_home
from barograph.engines.spark.folders import STATE_VARIABLE

EXAMPLE = Path(__file__).parents[2] / "examples" / "structured_word_count.py"


def test_at_most_five_lines_are_added() -> None:
    added = [line for line in EXAMPLE.read_text().splitlines() if line.endswith("# added")]
    assert 0 < len(added) <= 5
    rest = "".join(line for line in EXAMPLE.read_text().splitlines() if line not in added)
    assert "import barograph" not in rest
    assert "barograph.start" not in rest


@pytest.mark.spark
@pytest.mark.slow
def test_it_runs_and_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the first command of its own text: seats and instances are chosen."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    (command,) = re.findall(r"^ +barograph (conf --workloads .*) counts$", EXAMPLE.read_text(), re.MULTILINE)
    submit = [sys.executable, "-m", "barograph.cli.main", *command.split(), str(tmp_path / "checkpoint")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    log = tmp_path / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            submit, env=environment, cwd=EXAMPLE.parents[1], stdout=out, stderr=out, start_new_session=True
        ) as program,
    ):
        try:
            deadline = time.monotonic() + 240
            while not (found := status(capsys)) or not found[0]["topologies"] or b"Batch: 0" not in log.read_bytes():
                assert program.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.5)
            (topology,) = found[0]["topologies"]
            assert found[0]["app"] == "StructuredWordCount"
            seats = max(8, 4 * len(os.sched_getaffinity(0)))
            assert topology["operators"] == {"source": 2, "aggregate": seats // 2 - 2}
            assert topology["supervised"]
            assert f"without a master it is local[{seats}]" in log.read_text()
            assert f"has 202 instances and {seats} seats are free" in log.read_text()
        finally:
            os.killpg(program.pid, signal.SIGKILL)


@pytest.mark.spark
@pytest.mark.slow
def test_without_room_it_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark's own defaults: 200 shuffle partitions, and a core each."""
    main(["conf", "--workloads"])
    settings = capsys.readouterr().out.split()
    submit = [str(pyspark_home() / "bin" / "spark-submit"), "--master", "local[2]", *settings]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    done = subprocess.run(
        [*submit, str(EXAMPLE), str(tmp_path / "checkpoint")],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    # spark-submit puts all that a Python program writes on its standard output.
    sentence = "it needs 202 seats, one for each instance, and the application has 2: give the application more"
    assert sentence in done.stdout.splitlines()[-1], done.stdout[-3000:]


def status(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["status", "--format", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found
