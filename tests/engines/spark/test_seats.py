"""Seats of executors follow spark.task.cpus, which may be a fraction: seen by a query that fills them."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import open_session, real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.model import Load, Node, Worker
from barograph.testing.local_cluster import with_testing_jar
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark
CORES = 4


@contextmanager
def local(task_cpus: str | None) -> Iterator[SparkSession]:
    """Spark in this process alone: its executor is the driver."""
    own = {"spark.master": f"local[{CORES}]", "spark.driver.host": "127.0.0.1"}
    asked = {} if task_cpus is None else {"spark.task.cpus": task_cpus}
    spark = open_session("seats", with_testing_jar(), own, asked)
    try:
        yield spark
    finally:
        spark.stop()


@pytest.mark.parametrize(("task_cpus", "seats"), [("0.5", 8), ("2", 2), (None, CORES)])
def test_a_query_fills_the_seats_that_are_seen(tmp_path: Path, task_cpus: str | None, seats: int) -> None:
    """The last session sets nothing: settings of an earlier one in the same process do not hold for it."""
    with local(task_cpus) as spark:
        engine = SparkEngine(spark, {})
        machine_pct, deadline = 100.0 * len(os.sched_getaffinity(0)), time.monotonic() + 30
        while engine.observe().nodes[0].cpu_pct != machine_pct:  # the executor reports it
            assert time.monotonic() < deadline, engine.observe().nodes
            time.sleep(0.05)
        ((node,), (worker,)) = ((now := engine.observe()).nodes, now.workers)
        assert (type(node), node.seats) == (Node, seats)
        assert (type(worker), worker.seats) == (Worker, seats)

        replay = Replay(Load.parse("constant 100").schedule(1.0), 1, numbers=True)
        rows = spark.readStream.format(FORMAT).options(**replay.options()).load()
        writer = rows.repartition(seats - 1).writeStream.queryName("filling").outputMode("update").format("noop")
        query = real_time(writer.option("checkpointLocation", str(tmp_path / "checkpoint")), 60.0).start()
        try:
            deadline = time.monotonic() + 120
            while (epoch := engine.present("filling")) is None or not epoch.is_up:
                assert time.monotonic() < deadline, "not all instances came up"
                require_alive(query)
                time.sleep(0.05)
                engine.refresh()
            assert len(epoch.seated) == len(epoch.lives) == seats
            assert {s.executor for s in epoch.seated.values()} == {worker.executor}
            assert engine.free_seats("another") == 0
        finally:
            query.stop()
