"""A supervised query, and a plain start on its checkpoint by the same program: Spark stops the first for the second."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.checkpoint_claims import used_in
from barograph.engines.spark.session import real_time
from barograph.model import BadInput, Load
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark


def test_the_first_is_ended_and_says_why(shared_stage: LocalCluster, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    replay = Replay(Load.parse("constant 100").schedule(1.0), 2)

    def writer(name: str) -> DataStreamWriter:
        lines = shared_stage.spark.readStream.format(FORMAT).options(**replay.options()).load()
        named = lines.writeStream.queryName(name).outputMode("update").format("noop")
        return real_time(named.option("checkpointLocation", checkpoint), 60.0)

    is_used = used_in(shared_stage.spark)
    assert not is_used(checkpoint)
    kept = shared_stage.supervisor.start(lambda: writer("kept"))
    try:
        assert kept.await_up(60.0)
        assert is_used(checkpoint), "though nothing is committed"
        plain = writer("plain").start()
        try:
            with pytest.raises(BadInput) as ended:
                kept.awaitTermination(30.0)
            assert f"was taken over by another start in this driver, its run {plain.runId}" in str(ended.value)
            assert plain.isActive and plain.id == kept.id
        finally:
            plain.stop()
    finally:
        kept.stop()


def test_one_that_its_program_stops_by_spark_ends_in_order(shared_stage: LocalCluster, tmp_path: Path) -> None:
    replay = Replay(Load.parse("constant 100").schedule(1.0), 2)
    lines = shared_stage.spark.readStream.format(FORMAT).options(**replay.options()).load()
    named = lines.writeStream.queryName("stopped").outputMode("update").format("noop")
    kept = shared_stage.supervisor.start(lambda: real_time(named, 60.0), str(tmp_path / "checkpoint"))
    try:
        assert kept.await_up(60.0)
        found = shared_stage.spark.streams.get(kept.id)
        assert found is not None
        found.stop()
        assert kept.awaitTermination(30.0) is True
        assert kept.exception() is None
    finally:
        kept.stop()
