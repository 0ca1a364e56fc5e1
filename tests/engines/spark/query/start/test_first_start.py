"""A query with Spark's 200 shuffle partitions on a cluster of 24 seats: it starts with fewer, and keeps them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.first_size import PARTITIONS
from barograph.engines.spark.session import real_time
from barograph.model import Load
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark


@pytest.fixture
def default_partitions(shared_stage: LocalCluster) -> Iterator[None]:
    conf = shared_stage.spark.conf
    before = conf.get(PARTITIONS)
    conf.set(PARTITIONS, "200")
    yield
    conf.set(PARTITIONS, str(before))


def kept_partitions(checkpoint: Path) -> set[str]:
    """By the logs of epochs: Spark itself takes them from there at every restart."""
    found = [f.read_text() for f in (checkpoint / "offsets").iterdir() if f.name.isdecimal()]
    return {text.partition(f'"{PARTITIONS}":"')[2].partition('"')[0] for text in found}


@pytest.mark.usefixtures("default_partitions")
def test_a_query_that_does_not_fit_starts_smaller_and_stays_so(
    shared_stage: LocalCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stage = shared_stage
    replay = Replay(Load.parse("constant 100").schedule(1.0), 2)
    lines = stage.spark.readStream.format(FORMAT).options(**replay.options()).load()
    counts = lines.groupBy("value").count()

    def build() -> DataStreamWriter:
        writer = counts.writeStream.queryName("first-start").outputMode("update").format("noop")
        return real_time(writer.option("checkpointLocation", str(tmp_path)), 2.0)

    for start in range(2):
        query = stage.supervisor.start(build)
        try:
            assert query.await_up(120.0), query.doing
            epoch = stage.engine.present("first-start")
            assert epoch is not None
            assert len(epoch.seated) == 12, "half of the seats: two sources and ten counts"
            assert query.restarts == ()
            deadline_s = 60.0
            while not query.recentProgress and deadline_s > 0:
                query.awaitTermination(0.5)
                deadline_s -= 0.5
            assert query.recentProgress
        finally:
            query.stop()
        assert kept_partitions(tmp_path) == {"10"}
        said = [line for line in capfd.readouterr().err.splitlines() if "first-start has 202 instances" in line]
        assert len(said) == (1 if start == 0 else 0)
    assert stage.spark.conf.get(PARTITIONS) == "200"
