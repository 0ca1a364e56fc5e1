"""One cluster for all test files that do not harm it: starting one takes longer than most tests."""

from collections.abc import Iterator

import pytest

from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.testing.local_cluster import LocalCluster, OpenSession, open_cluster_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the shared cluster come last: a process has one Spark application at a time, and this one stays."""
    items.sort(key=lambda item: "shared_stage" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def shared_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE_VARIABLE, str(tmp_path_factory.mktemp("shared") / "state"))
        with open_cluster_session() as opened:
            yield opened


@pytest.fixture(scope="module")
def shared_stage(shared_session: OpenSession) -> Iterator[LocalCluster]:
    """The shared cluster, with an engine and a supervisor for the tests of one file."""
    with shared_session.steerable() as stage:
        yield stage
