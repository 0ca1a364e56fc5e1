"""Shapes that read a Kafka topic; without a repository and without cached jars of Kafka these tests are skipped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fetched import needs_kafka

ROOT = Path(__file__).parents[4]
PROGRAM = "tests.engines.spark.shapes.from_a_topic"
NAMES = ("stateless", "windows", "deduplication, then counts")


@pytest.mark.spark
@pytest.mark.slow
def test_what_a_shape_reads_from_a_topic_is_exact_too() -> None:
    needs_kafka()
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, *NAMES], capture_output=True, text=True, timeout=900, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == set(NAMES)
    for name, one in found.items():
        assert one["faults"] == [], name
        assert one["due"] > 0
    assert found["windows"]["dropped"] > 0
    assert found["windows"]["counts"]["count"] == 3
