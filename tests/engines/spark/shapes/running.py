"""A query of a shape that runs on the shared cluster, and what is done to it."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.engines.spark.shapes.epochs import Offsets, topic_offsets
from tests.engines.spark.shapes.shape import VALUES, Judgement, Shape
from tests.polling import until

from barograph.control.decide import decide
from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.model import Cycle, Demand, Forecast, Instance, OperatorDemand, Placement, Plan, Rescale, Slot, Snapshot
from barograph.policy.registry import named as named_policy
from barograph.testing.local_cluster import LocalCluster

EPOCH_S = 4.0


@dataclass
class RunningShape:
    stage: LocalCluster
    shape: Shape
    name: str
    query: Supervised
    folder: Path
    offsets: Offsets

    def executors(self) -> dict[str, str]:
        """``operator/index`` -> its executor; empty until all instances of the present epoch have reported."""
        require_alive(self.query)
        self.stage.engine.refresh()
        epoch = self.stage.engine.present(self.name)
        if epoch is None or not epoch.is_up:
            return {}
        return {f"{i.operator}/{i.index}": life.executor for i, life in epoch.lives.items()}

    def epoch(self) -> int:
        self.stage.engine.refresh()
        present = self.stage.engine.present(self.name)
        return -1 if present is None else present.epoch

    def counts(self) -> dict[str, int]:
        """Instances by operator; empty until all have reported."""
        names = [instance.rpartition("/")[0] for instance in self.executors()]
        return {operator: names.count(operator) for operator in dict.fromkeys(names)}

    def await_flow(self, more: int = 100) -> None:
        """Until it is up and its sources have read some rows more."""
        read = 0

        def flows() -> bool:
            nonlocal read
            if not self.executors():
                return False
            read += self._newly_read()
            return read > more

        until(flows, 180.0)

    def _newly_read(self) -> int:
        """Rows that its sources have read since this was last called."""
        seen = self.stage.engine.observe("shapes").metrics
        rows = seen.rows_of_operator.get((self.name, "source"))
        return 0 if rows is None else int(seen.columns["executed"][rows].sum())

    def apply(self, plan: Plan) -> None:
        outcome = self.stage.supervisor.apply(plan)
        assert outcome.ok, outcome.refused
        until(lambda: bool(self.executors()), 180.0)

    def move(self, operator: str) -> None:
        """Its first instance goes to another node, the one with most free seats."""
        workers = {w.executor: w.slot for w in self.stage.engine.workers()}
        at = workers[self.executors()[f"{operator}/0"]]
        taken = Counter(self.stage.engine.observe("shapes").placement.slots.values())
        to = min((slot for slot in workers.values() if slot.node != at.node), key=lambda slot: taken[slot])
        self.apply(Plan(Placement({Instance(self.name, operator, 0): Slot(to.node, to.index)})))
        found = workers[self.executors()[f"{operator}/0"]]
        assert found == to, f"{operator}/0 is on {found} and not on {to}"

    def scale(self, operator: str, count: int) -> None:
        self.apply(Plan(rescales=(Rescale(self.name, operator, count),)))

    def grow_by_policy(self, operator: str, count: int) -> None:
        """As a policy does it that wants so many instances of this operator, and sees no need to change the others."""

        def wish(history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:  # noqa: ARG001
            found = []
            for topology in now.topologies:
                for o in topology.operators:
                    n = count if (topology.name, o.name) == (self.name, operator) else o.parallelism
                    found.append(OperatorDemand(topology.name, o.name, n, (10.0,) * n, wanted=n))
            return Demand(tuple(found), enforced=False)

        policy = replace(named_policy("even"), scaler=wish)
        self.apply(decide(policy, (), self.stage.engine.observe("shapes")).plan)

    def kill(self, operator: str) -> None:
        """kill -9 of the executor with its first instance; returns when rows flow again.

        An executor that dies between two epochs restarts nothing, so an epoch is awaited that has just begun."""
        before = self.epoch()
        until(lambda: self.epoch() > before and bool(self.executors()), 60.0)
        victim = self.executors()[f"{operator}/0"]
        node = next(w.slot.node for w in self.stage.engine.workers() if w.executor == victim)
        kill_executor(self.stage.cluster.run, node, victim)
        until(lambda: bool(now := self.executors()) and victim not in now.values(), 180.0)
        self.await_flow()

    def judged(self) -> Judgement:
        """Commit what was read, stop it, and compare."""
        self.apply(Plan(cuts=(self.name,)))
        self.query.stop()
        died = [r.epoch for r in self.query.restarts if r.epoch is not None]
        checkpoint, notes = self.folder / "checkpoint", self.folder / "notes"
        found = self.shape.judge(self.shape.result(self.stage.spark, checkpoint, notes, died, self.offsets))
        assert found.due > 0
        reported = sum(o["numRowsDroppedByWatermark"] for p in self.query.recentProgress for o in p["stateOperators"])
        if reported != found.dropped:
            found.faults.append(f"Spark says that it dropped {reported} late rows, and {found.dropped} are due")
        return found


@contextmanager
def running(
    stage: LocalCluster,
    shape: Shape,
    partitions: int = 2,
    tamper: str = "true",
    read: Callable[[], DataFrame] | None = None,
) -> Iterator[RunningShape]:
    """partitions: of its shuffles. tamper: a condition that some rows do not meet, so that they are lost. read: the
    same rows from a topic, instead of from the replay source."""
    name = shape.name.replace(" ", "-").replace(",", "")
    with tempfile.TemporaryDirectory(prefix="barograph-shape-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        table = stage.spark.range(0, VALUES, 3, 1).selectExpr("id as value", "concat('name-', id) as name")
        table.write.parquet(str(folder / "table"))

        def build() -> DataStreamWriter:
            stage.spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
            inputs = shape.read(stage.spark) if read is None else [read()]
            tampered = [rows.where(tamper) for rows in inputs]
            frame = shape.frame(stage.spark, tampered, folder / "table", folder / "notes")
            writer = frame.writeStream.queryName(name).outputMode("update").format("noop")
            return real_time(writer.option("checkpointLocation", str(folder / "checkpoint")), EPOCH_S)

        query = stage.supervisor.start(build)
        try:
            offsets = committed_offsets if read is None else topic_offsets
            found = RunningShape(stage, shape, name, query, folder, offsets)
            found.await_flow()
            yield found
        finally:
            query.stop()
