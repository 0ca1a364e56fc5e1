"""A real cluster with a Spark application on it, for tests and benches, and word counts that come and go on it."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.beat import Keeper
from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.conf import plugin_settings
from barograph.engines.spark.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.outflow import Outflow
from barograph.engines.spark.session import await_executors, open_session, real_time
from barograph.engines.spark.settings import ClusterSettings
from barograph.engines.spark.share_groups import shares_of
from barograph.engines.spark.shares import Shares
from barograph.engines.spark.supervise import Build, Supervised
from barograph.engines.spark.supervisor import Supervisor
from barograph.experiments.verdict import Verdict, judge
from barograph.experiments.warm import require_alive
from barograph.loop_process import Orders, keep
from barograph.model import Load, Plan
from barograph.priority.served import serve
from barograph.workloads import wordcount
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.truth import truth_by_spark

PARALLELISM = {"source": 2, "split": 2, "count": 3}
LINES = LineShape(seed=5)


@dataclass
class Stage:
    cluster: EmbeddedCluster
    spark: SparkSession
    engine: SparkEngine
    supervisor: Supervisor

    def turn(self, settings: Mapping[str, str], timeout_s: float = 60.0) -> None:
        """Change settings of Spark's streaming shuffle and state in the running application, for the next query."""
        for key, value in settings.items():
            if key.startswith("spark.sql."):
                self.spark.conf.set(key, value)
                continue
            call = f"reflect('org.apache.spark.barograph.Dial', 'set', '{key}', '{value}') as here"
            reached: set[str] = set()
            deadline = time.monotonic() + timeout_s
            while not reached >= set(self.engine.living()[0]):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{key} was set on {sorted(reached)} only")
                reached |= {r["here"] for r in self.spark.range(0, 64, 1, 16).selectExpr(call).collect()}

    @contextmanager
    def steered(self, policy: str, cycle_s: float = 2.0, **more: Any) -> Iterator[Keeper]:
        """While this lasts a controller process steers everything on the stage, over the driver's endpoint.

        more: of its ``Orders``.
        """
        endpoint = self.supervisor.endpoint or serve(self.supervisor)
        with tempfile.TemporaryDirectory(prefix="barograph-steered-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            orders = Orders(
                str(endpoint.path), str(folder / "history"), str(folder / "beat"), policy, cycle_s, **more
            )  # fmt: skip
            log = folder / "controller.log"
            self.supervisor.steered_s = None
            with keep(orders, log) as keeper:
                deadline = time.monotonic() + 60
                while self.supervisor.steered_s is None:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"the controller ordered nothing within 60 s: {log.read_text()}")
                    time.sleep(0.05)
                yield keeper
            self.supervisor.steered_s = None

    @contextmanager
    def wordcount(
        self,
        name: str = wordcount.NAME,
        rate: int = 400,
        parallelism: Mapping[str, int] = PARALLELISM,
        epoch_s: float = 60.0,
        tamper: Callable[[DataFrame], DataFrame] = lambda words: words,
        supervised: bool = False,
        lines: LineShape = LINES,
        load: str | None = None,
    ) -> Iterator["Counting"]:
        """A word count that runs until the block ends; every instance is up when it begins. supervised: kept alive.

        load: its shape over an hour, instead of a constant rate.
        """
        with tempfile.TemporaryDirectory(prefix="barograph-test-", ignore_cleanup_errors=True) as folder:
            schedule = Load.parse(load or f"constant {rate}").schedule(1.0 if load is None else 3600.0)
            replay = Replay(schedule, parallelism["source"], lines)

            def build() -> DataStreamWriter:
                writer = wordcount.build(self.spark, replay, parallelism, tamper).queryName(name)
                return real_time(writer.option("checkpointLocation", folder), epoch_s)

            with self._counting(build, name, replay, Path(folder), supervised) as counting:
                yield counting

    @contextmanager
    def wordcount_at(self, before: "Counting", epoch_s: float = 60.0) -> Iterator["Counting"]:
        """The same word count, gone on with from its checkpoint."""

        def build() -> DataStreamWriter:
            writer = wordcount.build(self.spark, before.replay, PARALLELISM).queryName(before.name)
            return real_time(writer.option("checkpointLocation", str(before.checkpoint)), epoch_s)

        with self._counting(build, before.name, before.replay, before.checkpoint, True) as counting:
            yield counting

    @contextmanager
    def _counting(
        self, build: Build, name: str, replay: Replay, checkpoint: Path, supervised: bool
    ) -> Iterator["Counting"]:
        query = self.supervisor.start(build) if supervised else build().start()
        self.engine.refresh()
        before = self.engine.sight.output.get(name, Outflow()).total
        counting = Counting(self, name, query, replay, checkpoint, before)
        try:
            counting.settle(lambda: bool(counting.executors()) and counting.output() > 0, 180.0)
            yield counting
        finally:
            query.stop()


@dataclass
class Counting:
    """A word count under way."""

    stage: Stage
    name: str
    query: StreamingQuery | Supervised
    replay: Replay
    checkpoint: Path
    output_before: int

    def settle(self, condition: Callable[[], bool], timeout_s: float = 60.0, look_s: float = 0.1) -> None:
        """Looking costs the driver CPU: who measures what it does meanwhile looks less often."""
        deadline = time.monotonic() + timeout_s
        while True:
            require_alive(self.query)
            self.stage.engine.refresh()
            if condition():
                return
            if time.monotonic() > deadline:
                raise TimeoutError("what was waited for did not come about")
            time.sleep(look_s)

    def epoch(self) -> int:
        require_alive(self.query)
        epoch = self.stage.engine.sight.present(self.name)
        assert epoch is not None
        return epoch.epoch

    def executors(self) -> dict[str, str]:
        """``operator/index`` -> the executor it reported itself from in the present epoch; empty until all have."""
        epoch = self.stage.engine.sight.present(self.name)
        if epoch is None or not epoch.is_up:
            return {}
        return {f"{i.operator}/{i.index}": life.executor for i, life in epoch.lives.items()}

    def output(self) -> int:
        return self.stage.engine.sight.output.get(self.name, Outflow()).total - self.output_before

    def verdict(self) -> Verdict:
        """Commit what was read, stop, and compare the state with what the source made."""
        outcome = self.stage.engine.apply(Plan(cuts=(self.name,)))
        assert outcome.ok, outcome.refused
        self.query.stop()
        due = truth_by_spark(self.stage.spark, self.replay, committed_offsets(self.checkpoint))
        assert due.lines > 0
        return judge(due, wordcount.counted(self.stage.spark, str(self.checkpoint)))


@contextmanager
def open_stage(
    settings: ClusterSettings | None = None, conf: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Stage]:
    """Everything up; everything ended with the block. conf: settings that win over Barograph's own."""
    settings = settings or ClusterSettings(nodes=3, seats=8)
    with start_cluster(settings) as cluster:
        spark = open_session("barograph stage", plugin_settings(), cluster.session_conf(), conf)
        ending = ExitStack()
        try:
            await_executors(spark, settings.nodes * settings.executors)
            hosts = settings.addresses()
            shares = ending.enter_context(shares_of(cluster.run))
            engine = SparkEngine(spark, {hosts[n.name]: n for n in settings.model_nodes()}, shares=Shares(shares))
            supervisor = Supervisor(spark, engine=engine)
            ending.callback(supervisor.close)
            yield Stage(cluster, spark, engine, supervisor)
        finally:
            ending.close()
            spark.stop()
