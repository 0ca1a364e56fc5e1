"""What judges the state of a windowed count knows which windows the query has dropped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.submit.test_submitted_script import SCRIPT, VERDICT, submitted
from tests.submit.window_counts import watermark_ms

from barograph.engines.spark.cluster.processes import python_environment
from barograph.engines.spark.query.checkpoint import last_committed_epoch

WATERMARK = '"10 minutes"'
WINDOW_S = 10.0


@pytest.mark.spark
@pytest.mark.slow
def test_windows_below_the_watermark_are_not_called_wrong(tmp_path: Path) -> None:
    assert WATERMARK in SCRIPT.read_text()
    (tmp_path / "app.py").write_text(SCRIPT.read_text().replace(WATERMARK, '"1 second"'))
    checkpoint = tmp_path / "checkpoint"
    settings = ("--conf", "spark.sql.shuffle.partitions=2")

    def has_dropped() -> bool:
        if last_committed_epoch(checkpoint) is None:
            return False
        start_ms: int = json.loads((checkpoint / "sources" / "0" / "load.json").read_text())["start_ms"]
        return watermark_ms(checkpoint) > start_ms + 1000 * WINDOW_S

    with submitted(tmp_path, "--workloads", "--master", "local[8]", *settings, "app.py", str(checkpoint)) as program:
        program.settle(has_dropped)
    done = subprocess.run(
        [sys.executable, str(VERDICT), str(checkpoint)], env=python_environment(), capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["counts"] > 1000
    assert found["wrong"] == {}
