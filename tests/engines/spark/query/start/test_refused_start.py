"""A query that Barograph cannot keep is refused in one sentence, and is not left running."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.state_format import FORMAT_1_ALLOWED, STATE_FORMAT
from barograph.engines.spark.session import real_time
from barograph.model import BadInput, Load
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark


def writer(stage: LocalCluster, name: str) -> DataStreamWriter:
    replay = Replay(Load.parse("constant 100").schedule(1.0), 2)
    lines = stage.spark.readStream.format(FORMAT).options(**replay.options()).load()
    return lines.writeStream.queryName(name).outputMode("update").format("noop")


@pytest.mark.parametrize("trigger", [{}, {"processingTime": "1 second"}, {"availableNow": True}], ids=str)
def test_a_trigger_that_is_not_real_time(shared_stage: LocalCluster, tmp_path: Path, trigger: dict[str, str]) -> None:
    micro = writer(shared_stage, "micro").option("checkpointLocation", str(tmp_path / "checkpoint"))
    if trigger:
        micro = micro.trigger(**trigger)
    with pytest.raises(BadInput, match="in real-time mode only") as refused:
        shared_stage.supervisor.start(lambda: micro)
    assert "Trigger: add .trigger(realTime='60 seconds'), or start it" in str(refused.value)
    assert not (tmp_path / "checkpoint").exists(), "nothing was started"
    assert "micro" not in [query.name for query in shared_stage.spark.streams.active]


@pytest.mark.parametrize("key", [STATE_FORMAT, FORMAT_1_ALLOWED])
def test_state_in_format_1_is_refused(shared_stage: LocalCluster, tmp_path: Path, key: str) -> None:
    conf = shared_stage.spark.conf
    before = conf.get(key)
    conf.set(key, "1" if key == STATE_FORMAT else "true")
    try:
        with pytest.raises(BadInput, match="can write over the state of the next one"):
            shared_stage.supervisor.start(lambda: real_time(writer(shared_stage, "unsafe"), 5.0), str(tmp_path / "c"))
    finally:
        conf.set(key, str(before))
    assert not (tmp_path / "c").exists(), "nothing was started"


def test_no_checkpoint(shared_stage: LocalCluster) -> None:
    with pytest.raises(BadInput, match=r"needs a checkpoint: \.option\('checkpointLocation', FOLDER\)"):
        shared_stage.supervisor.start(lambda: real_time(writer(shared_stage, "forgetful"), 5.0))
    assert "forgetful" not in [query.name for query in shared_stage.spark.streams.active]
    assert "forgetful" not in [query.topology for query in shared_stage.supervisor.queries]
