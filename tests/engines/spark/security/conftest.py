"""A folder that other users can enter, unlike those of pytest, and the query that another user attacks."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.testing.local_cluster import LocalCluster, RunningQuery


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="barograph-open-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def state(shared_stage: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared cluster was started with another state folder than a single test has."""
    options = shared_stage.spark.sparkContext.getConf().get("spark.executor.extraJavaOptions") or ""
    found = re.search(r"-Djava\.io\.tmpdir=(\S+)/runs/[^/]+/tmp", options)
    assert found
    monkeypatch.setenv(STATE_VARIABLE, found[1])
    return Path(found[1])


@pytest.fixture(scope="module")
def running(shared_stage: LocalCluster) -> Iterator[RunningQuery]:
    with shared_stage.query(name="guarded", epoch_s=2.0) as counting:
        yield counting
