"""Many senders of slow rows in front of one instance: a cut waits for few of them."""

import time
from pathlib import Path

import pytest

from barograph.engines.spark.query.naming import named
from barograph.engines.spark.session import real_time
from barograph.model import Instance, Load, Plan
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark

SENDERS = 16
ROW_S = 0.4
SLOW = Instance("slow-rows", "slow", 0)


@pytest.mark.slow
def test_a_cut_waits_for_few_slow_rows_of_many_senders(shared_stage: LocalCluster, tmp_path: Path) -> None:
    """With two rows of each sender on their way, it would wait for 12.8 s."""
    stage = shared_stage
    replay = Replay(Load.parse("constant 1000").schedule(1.0), SENDERS, LineShape(seed=2), numbers=True)
    lines = stage.spark.readStream.format(FORMAT).options(**replay.options()).load()
    sleep = f"reflect('java.lang.Thread', 'sleep', {round(1000 * ROW_S)}L) as slept"
    frame = named(lines.repartition(1).selectExpr("k", sleep), SLOW.operator)
    writer = frame.writeStream.queryName(SLOW.topology).outputMode("update").format("noop")
    query = real_time(writer.option("checkpointLocation", str(tmp_path)), 600.0).start()
    try:
        waiting = []
        executed, deadline = 0.0, time.monotonic() + 120
        stage.engine.observe()
        while executed < 2 * SENDERS:
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline, f"{executed} rows were executed"
            time.sleep(ROW_S)
            seen = stage.engine.observe()
            if SLOW in seen.metrics.instances:
                executed += seen.metrics.row(SLOW).executed
                waiting.append(seen.metrics.row(SLOW).pending)
        # One is being executed and one follows it; a report of a sender may be newer than that of the receiver.
        assert max(waiting[5:]) <= 6, waiting
        outcome = stage.engine.apply(Plan(cuts=(SLOW.topology,)))
        assert not outcome.refused
        assert outcome.order_to_commit_s is not None
        assert outcome.order_to_commit_s < 2 * SENDERS * ROW_S - 2.0
    finally:
        query.stop()
