"""Topics whose offsets are not all rows, and one that grows within an epoch, with a real broker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fetched import needs_kafka

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_transactions_compaction_and_new_partitions_are_read_exactly_and_seen(tmp_path: Path) -> None:
    """That no backlog stays, and that new partitions are read within the epoch, the program waits for."""
    needs_kafka()
    done = subprocess.run(
        [sys.executable, "-m", "tests.kafka.odd_topics", str(tmp_path)],
        capture_output=True, text=True, timeout=900, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for level in ("read_uncommitted", "read_committed"):
        assert found[level]["counts"] == found[level]["expected"], level
        assert found[level]["idle_part"] > 0.5, f"{level}: waiting for the next transaction is idle"
    assert found["compacted"]["last"] == found["compacted"]["expected"]
    assert found["grown"]["counts"] == found["grown"]["expected"]
