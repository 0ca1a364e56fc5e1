"""One cluster for all test files that can share one: starting one takes longer than most tests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.testing.local_cluster import LocalCluster, OpenSession, open_cluster_session

FENCES = (0.9, 0.6, 0.5)  # in cores; they are put up only by tests that need them


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the shared cluster come last: a process has one Spark application at a time, and this one stays. Those
    that kill parts of it come at the very end."""

    def turn(item: pytest.Item) -> int:
        fixtures = getattr(item, "fixturenames", ())
        return ("shared_session" in fixtures) + ("kept_stage" in fixtures)

    items.sort(key=turn)


@pytest.fixture(scope="session")
def shared_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "state"


@contextmanager
def state_in(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE_VARIABLE, str(folder))
        yield


@pytest.fixture(scope="session")
def shared_session(shared_state: Path) -> Iterator[OpenSession]:
    with state_in(shared_state), open_cluster_session(ClusterSettings(3, FENCES, 8)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_stage(shared_session: OpenSession) -> Iterator[LocalCluster]:
    """The shared cluster, with an engine and a supervisor for the tests of one file."""
    with shared_session.steerable() as stage:
        yield stage


@pytest.fixture(scope="module")
def kept_stage(shared_state: Path, shared_stage: LocalCluster) -> Iterator[LocalCluster]:
    """The shared cluster for a file whose tests kill parts of it: they are started again, and all are there when the
    next file begins."""
    with state_in(shared_state):
        keeper = NodeKeeper(shared_stage.cluster)
        try:
            yield shared_stage
            await_all_executors(shared_stage)
        finally:
            keeper.close()


def await_all_executors(stage: LocalCluster) -> None:
    deadline = time.monotonic() + 180
    while len(stage.engine.living()[0]) < stage.cluster.settings.nodes:
        assert time.monotonic() < deadline, "a lost executor did not come back"
        time.sleep(0.1)


@pytest.fixture
def all_executors(kept_stage: LocalCluster) -> Iterator[None]:
    """Spark's master brings a lost executor back by itself; each test begins with all of them."""
    yield
    await_all_executors(kept_stage)
