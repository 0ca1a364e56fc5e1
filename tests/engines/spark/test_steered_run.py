"""The whole command with a policy: a controller process acts on a real cluster, and every row is counted once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.history.read import cycles

pytestmark = pytest.mark.spark


def test_a_run_that_a_policy_steers(tmp_path: Path) -> None:
    history = tmp_path / "history"
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--policy", "adaptive", "--cycle", "2s",
        "--node-cpu", "1", "--seconds", "30", "--load", "ramp 0s=200 15s=1500 30s=200", "--history", str(history),
        "--format", "json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert (report["rows"]["lost"], report["rows"]["counted_twice"], report["rows"]["checksum_ok"]) == (0, 0, True)
    assert report["policy"] == "adaptive"
    assert report["controller"]["starts"] == 1, report["controller"]
    assert report["cpu_core_s"]["used"] > 0
    assert report["decisions"], "it never decided anything"
    assert all(d["why"] for d in report["decisions"])
    recorded = list(cycles(history))
    assert len(recorded) >= 2  # a busy machine lets few cycles through
    refused = [r for c in recorded if c.outcome is not None for r in c.outcome.refused]
    assert not refused
    assert any(c.plan.limits_pct for c in recorded)
