"""The soak's driver program, which ``barograph keep`` starts: a steered word count by ``barograph.start``.

``python -m bench._soak.driver FOLDER``. When a file ``stop`` appears in FOLDER, it writes a verdict there and ends.
"""

import json
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import barograph
from barograph.control.heartbeat import ControllerKeeper, last_heartbeat
from barograph.engines.spark.driver.application import supervisor_of_session
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import open_session, real_time
from barograph.experiments.steering.steering import Steering
from barograph.experiments.verdict import judge
from barograph.logs import set_up
from barograph.model import Load, Plan
from barograph.priority.service import serve
from barograph.testing.local_cluster import LINES, PARALLELISM, with_testing_jar
from barograph.workloads.replay import Replay
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._soak.flow import Flow, write

NAME = "soak"
RATE = 300
EPOCH_S = 20.0
LOOK_S = 0.2
HEAP_EVERY_S = 60.0
INPUTS = WORDCOUNT.inputs(Replay(Load.parse(f"constant {RATE}").schedule(1.0), lines=LINES), PARALLELISM)


class FlowWatch:
    """Looks at the query and tells the bench."""

    def __init__(self, folder: Path, supervisor: Supervisor, query: Supervised, collect: bool) -> None:
        self._folder, self._engine, self._query, self._collect = folder, supervisor.engine, query, collect
        self._flow = Flow(os.getpid())
        self._rows = 0
        self._collected_s = time.monotonic()

    def look(self, keeper: ControllerKeeper, spark: SparkSession) -> None:
        self._engine.refresh()
        now_s, rows, present = time.monotonic(), self._engine.output_rows(NAME), self._engine.present(NAME)
        if present is not None and present.run != self._flow.run:
            self._flow = replace(self._flow, run=present.run, flowing_since_s=None)
            self._rows = rows
        elif present is not None and present.is_up and rows > self._rows:
            began_s = self._flow.flowing_since_s
            executors = {life.executor for life in present.lives.values()}
            self._flow = replace(
                self._flow, flowing_since_s=now_s if began_s is None else began_s, last_row_s=now_s,
                executors=tuple(sorted(executors)),
            )  # fmt: skip
            self._rows = rows
        heartbeat = last_heartbeat(keeper.heartbeat, keeper.process.pid)
        if self._collect and now_s - self._collected_s > HEAP_EVERY_S:
            self._collected_s = now_s
            self._flow = replace(self._flow, heap_mb=heap_mb(spark))
        deaths = tuple((r.cause, round(r.down_s, 2)) for r in self._query.restarts)
        self._flow = replace(
            self._flow, controller=keeper.process.pid, deaths=deaths,
            controller_waits=heartbeat is not None and heartbeat.doing == "waiting",
        )  # fmt: skip
        write(self._flow, self._folder)


def heap_mb(spark: SparkSession) -> float:
    """What the driver's heap holds after a collection."""
    lang = spark._jvm.java.lang  # type: ignore[union-attr]
    lang.System.gc()
    runtime = lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def main(folder: Path) -> int:
    set_up("info")
    settings = json.loads((folder / "settings.json").read_text())
    checkpoint = Path(settings["checkpoint"])
    spark = open_session("soak", with_testing_jar(), settings["conf"], log=folder / "spark.log")

    def build() -> DataStreamWriter:
        writer = WORDCOUNT.query(spark, INPUTS, PARALLELISM).queryName(NAME)
        return real_time(writer.option("checkpointLocation", str(checkpoint)), EPOCH_S)

    query = barograph.start(build)
    supervisor = supervisor_of_session(serve)
    assert supervisor.endpoint is not None
    watch = FlowWatch(folder, supervisor, query, settings["collect"])
    steering = Steering("adaptive", history=folder / "history", release_after_s=None)
    with steering.start(supervisor.endpoint.path, folder) as controller:
        keeper = controller.keeper
        while not (folder / "stop").exists():
            if not query.isActive:
                query.awaitTermination()  # raises why
                return 1
            watch.look(keeper, spark)
            time.sleep(LOOK_S)  # the interval between looks, not a wait for a condition
    outcome = supervisor.engine.apply(Plan(cuts=(NAME,)))
    assert outcome.ok, outcome.refused
    query.stop()
    due = WORDCOUNT.due(spark, INPUTS, committed_offsets(checkpoint))
    verdict = judge(due, WORDCOUNT.counted(spark, str(checkpoint)))
    (folder / "verdict.json").write_text(json.dumps(asdict(verdict)))
    supervisor.close()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
