"""An unchanged script under ``barograph submit --act`` on three hosts: it is scaled and moved, and outlives a host."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.submit.submitted_on_hosts import SubmittedOnHosts

from barograph.model import Load
from barograph.model.loads.schedule import encode
from barograph.testing.hosts import why_no_hosts
from barograph.testing.hosts.host import SHARED
from barograph.testing.hosts.spark_on_hosts import SparkOnHosts, open_spark_on_hosts

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "windowed_word_count.py"
VERDICT = Path(__file__).with_name("window_counts.py")
CHECKPOINT = SHARED / "checkpoint"
# Five times as much and back; the last part is long enough for a lost host and its consequences.
LOAD = "ramp 0s=2000 40s=2000 50s=10000 100s=10000 110s=2000 900s=2000"
FALLEN_S = 120.0


@pytest.fixture
def cluster() -> Iterator[SparkOnHosts]:
    """It asks for a secret."""
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)
    with open_spark_on_hosts(programs=[ROOT], is_secret=True) as opened:
        yield opened


@pytest.mark.spark
@pytest.mark.slow
def test_an_unchanged_script_is_scaled_and_moved_and_outlives_a_host(cluster: SparkOnHosts, tmp_path: Path) -> None:
    options = ["--workloads", "--act", "--conf", "spark.sql.shuffle.partitions=2"]
    segments = encode(Load.parse(LOAD).schedule(900.0).segments)
    script = SubmittedOnHosts(cluster, tmp_path / "out", options, SCRIPT, [str(CHECKPOINT), segments])
    script.settle(lambda: bool(script.topology()), 300.0)
    begun_s = time.monotonic()
    assert "act: queries are kept; adaptive acts" in script.said()
    script.settle(lambda: bool(script.applied("rescales")), 300.0)
    script.settle(lambda: bool(script.applied("moves")), 300.0)
    assert script.unlimited_hosts() == {}
    script.lose_a_used_host()
    script.settle(lambda: time.monotonic() - begun_s > FALLEN_S, FALLEN_S)
    script.go_on()
    script.end()
    verdict = json.loads(cluster.driver.run([sys.executable, str(VERDICT), str(CHECKPOINT)], 300.0).splitlines()[-1])
    assert verdict["rows"] > 300_000
    assert verdict["counts"] > 1_000
    assert verdict["wrong"] == {}
