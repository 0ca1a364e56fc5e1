"""The whole command on Spark alone: no plug-in, the same verdict, and the figures that Spark itself has."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_run_without_the_plug_in() -> None:
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--policy", "spark", "--seconds", "12",
        "--node-cpu", "1", "--epoch", "5s", "--load", "constant 300", "--busy", "split=100", "--format", "json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    rows = report["rows"]
    assert (rows["lost"], rows["counted_twice"], rows["checksum_ok"]) == (0, 0, True)
    assert rows["due"] == 12 * 300 * 8
    assert report["output"]["rows"] == rows["due"], "every row is timed once"
    assert report["latency_ms"]["due"]["mean"] >= report["latency_ms"]["read"]["mean"] >= 0
    assert report["cpu_core_s"]["used"] > 12 * 300 * 100e-6
    assert 1 <= report["nodes_used"]["mean"] <= 3
    assert (report["policy"], report["moves"], report["controller"]) == ("spark", None, None)
