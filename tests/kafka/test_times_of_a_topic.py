"""The record time of a Kafka row is its timestamp, with a real broker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fetched import needs_kafka

from barograph.engines.latency import bucket_of

PROGRAM = Path(__file__).with_name("timing_a_topic.py")


@pytest.mark.spark
@pytest.mark.slow
def test_rows_are_as_old_as_their_timestamps(tmp_path: Path) -> None:
    needs_kafka()
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=380, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["record"]["rows"] == found["due"]["rows"] == 500
    assert found["record"]["least_bucket"] >= bucket_of(int(found["age_ms"])), "not when they were read"
    # Rows of one write have nearly the same time, so buffers add little.
    assert 0 <= found["record"]["sum_ms"] - found["due"]["sum_ms"] <= 0.02 * found["due"]["sum_ms"]
