"""What ``barograph submit`` meets on a cluster that runs: one whose secret it does not have, and a session of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from barograph.engines.spark.cluster.processes import python_environment
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.submit.hooks import has_our_rule
from barograph.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.spark


@pytest.mark.slow  # an application waits for a minute for a master that does not take it
def test_a_missing_secret_is_one_sentence(shared_stage: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\n")
    master = shared_stage.cluster.master
    done = subprocess.run(
        [sys.executable, "-m", "barograph.cli.main", "submit", "--master", master, "app.py"],
        env={**python_environment(), STATE_VARIABLE: str(tmp_path / "state")}, cwd=tmp_path, capture_output=True,
        text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    # spark-submit passes on what the script writes to its standard error on its own standard output.
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("barograph submit: ")]
    assert said.startswith(f"barograph submit: {master} did not take the application: either the cluster asks for a")
    assert "Traceback" not in done.stdout


def test_a_session_of_ours_has_the_planner_rule(shared_stage: LocalCluster) -> None:
    assert has_our_rule(shared_stage.spark)
