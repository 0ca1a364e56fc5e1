"""A real cluster with a Spark application on it, for tests and benchmarks, and queries of workloads on it."""

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

from barograph.config import default
from barograph.control.heartbeat import ControllerKeeper
from barograph.control.process import ControllerConfig, keep
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.cluster.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import plugin_settings, workloads_settings
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import await_executors, open_session, real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.experiments.verdict import Verdict, judge
from barograph.model import BadInput, Load, Plan
from barograph.priority.service import serve
from barograph.workloads.keyed_counts import KeyedCounts
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from barograph.workloads.workload import Workload, unchanged

# What tests and benches call in a running Spark (jvm/testing). Only a checkout has it, and the wheel does not carry it.
TESTING_JAR = Path(__file__).parents[3] / "build" / "barograph-testing.jar"
PARALLELISM = dict(WORDCOUNT.default_parallelism)
LINES = LineShape(seed=5)
AUTO: str = default("enforce")


@dataclass
class LocalCluster:
    """A cluster on this machine, with an application, its engine and its supervisor."""

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
            if not TESTING_JAR.is_file():
                raise BadInput(f"{key} can only be changed with {TESTING_JAR.name}, which make builds in a checkout")
            call = f"reflect('org.apache.spark.barograph.testing.Dial', 'set', '{key}', '{value}') as here"
            reached: set[str] = set()
            deadline = time.monotonic() + timeout_s
            while not reached >= set(self.engine.living()[0]):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{key} was set on {sorted(reached)} only")
                reached |= {r["here"] for r in self.spark.range(0, 64, 1, 16).selectExpr(call).collect()}

    @contextmanager
    def steered(self, policy: str, cycle_s: float = default("cycle"), **more: Any) -> Iterator[ControllerKeeper]:
        """While this lasts, a controller process steers every query of the cluster over the driver's endpoint.

        more: of its ``ControllerConfig``.
        """
        endpoint = self.supervisor.endpoint or serve(self.supervisor)
        with tempfile.TemporaryDirectory(prefix="barograph-steered-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            config = ControllerConfig(
                str(endpoint.path), str(folder / "history"), str(folder / "beat"), policy, cycle_s,
                **{"release_after_s": None, **more},
            )  # fmt: skip
            log = folder / "controller.log"
            self.supervisor.steered_s = None
            with keep(config, log) as keeper:
                deadline = time.monotonic() + 60
                while self.supervisor.steered_s is None:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"the controller ordered nothing within 60 s: {log.read_text()}")
                    time.sleep(0.05)
                yield keeper
            self.supervisor.steered_s = None

    @contextmanager
    def query(
        self,
        name: str = "",
        rate: int = 400,
        parallelism: Mapping[str, int] | None = None,
        epoch_s: float = default("epoch"),
        tamper: Callable[[DataFrame], DataFrame] = unchanged,
        supervised: bool = False,
        lines: LineShape = LINES,
        load: str | None = None,
        workload: Workload = WORDCOUNT,
        recovery: Recovery | None = None,
    ) -> Iterator["RunningQuery"]:
        """A query of the workload that runs until the block ends; when the block begins every instance is running.

        name: of the query; the workload's if empty. supervised: restarted after failures. load: a load shape of one
        hour, instead of a constant rate. recovery: bounds the epochs of a supervised query.
        """
        instances = parallelism or workload.default_parallelism
        with tempfile.TemporaryDirectory(prefix="barograph-test-", ignore_cleanup_errors=True) as folder:
            schedule = Load.parse(load or f"constant {rate}").schedule(1.0 if load is None else 3600.0)
            inputs = workload.inputs(Replay(schedule, lines=lines), instances)
            started = _Query(workload, name or workload.name, inputs, instances, Path(folder), tamper)
            with self._running(started, epoch_s, supervised, recovery) as running:
                yield running

    @contextmanager
    def continued(self, before: "RunningQuery", epoch_s: float = default("epoch")) -> Iterator["RunningQuery"]:
        """The same query, supervised, continued from its checkpoint."""
        with self._running(before.started, epoch_s, True) as running:
            yield running

    @contextmanager
    def _running(
        self, started: "_Query", epoch_s: float, supervised: bool, recovery: Recovery | None = None
    ) -> Iterator["RunningQuery"]:
        def build() -> DataStreamWriter:
            return started.writer(self.spark, epoch_s)

        query = self.supervisor.start(build, recovery=recovery) if supervised else build().start()
        self.engine.refresh()
        before = self.engine.output_rows(started.name)
        running = RunningQuery(self, started, query, before)
        try:
            running.settle(lambda: bool(running.executors()) and running.output() > 0, 180.0)
            yield running
        finally:
            query.stop()


@dataclass(frozen=True)
class _Query:
    """What a query is built from."""

    workload: Workload
    name: str
    inputs: tuple[Replay, ...]
    parallelism: Mapping[str, int]
    checkpoint: Path
    tamper: Callable[[DataFrame], DataFrame]

    def writer(self, spark: SparkSession, epoch_s: float) -> DataStreamWriter:
        found = self.workload.query(spark, self.inputs, self.parallelism, tamper=self.tamper).queryName(self.name)
        return real_time(found.option("checkpointLocation", str(self.checkpoint)), epoch_s)


@dataclass
class RunningQuery:
    """A query of a workload on a local cluster. output_before: rows that queries of the same name had put out."""

    cluster: LocalCluster
    started: _Query
    query: StreamingQuery | Supervised
    output_before: int

    @property
    def name(self) -> str:
        return self.started.name

    @property
    def checkpoint(self) -> Path:
        return self.started.checkpoint

    @property
    def inputs(self) -> tuple[Replay, ...]:
        return self.started.inputs

    def settle(self, condition: Callable[[], bool], timeout_s: float = 60.0, look_s: float = 0.1) -> None:
        """Wait for a condition. Each look costs the driver CPU, so measurements use a longer ``look_s``."""
        deadline = time.monotonic() + timeout_s
        while True:
            require_alive(self.query)
            self.cluster.engine.refresh()
            if condition():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"the condition was not met within {timeout_s:g} s")
            time.sleep(look_s)

    def epoch(self) -> int:
        require_alive(self.query)
        epoch = self.cluster.engine.present(self.name)
        assert epoch is not None
        return epoch.epoch

    def executors(self) -> dict[str, str]:
        """``operator/index`` -> the executor it reported from in the present epoch; empty until all have."""
        epoch = self.cluster.engine.present(self.name)
        if epoch is None or not epoch.is_up:
            return {}
        return {f"{i.operator}/{i.index}": life.executor for i, life in epoch.lives.items()}

    def output(self) -> int:
        return self.cluster.engine.output_rows(self.name) - self.output_before

    def due(self) -> KeyedCounts:
        """The exact result for the rows that are committed."""
        read = committed_offsets(self.checkpoint)
        return self.started.workload.due(self.cluster.spark, self.inputs, read)

    def verdict(self) -> Verdict:
        """Commit what was read, stop, and compare the result with what the inputs contained."""
        outcome = self.cluster.engine.apply(Plan(cuts=(self.name,)))
        assert outcome.ok, outcome.refused
        self.query.stop()
        due = self.due()
        assert due.rows > 0
        return judge(due, self.started.workload.counted(self.cluster.spark, str(self.checkpoint)))


def with_testing_jar() -> dict[str, str]:
    """The plug-in's settings, with the workloads on the class path, and the jar for tests if there is one."""
    found = {**plugin_settings(), **workloads_settings()}
    if TESTING_JAR.is_file():
        for side in ("driver", "executor"):
            found[f"spark.{side}.extraClassPath"] += f":{TESTING_JAR}"
    return found


@dataclass
class OpenSession:
    """A cluster and a Spark application on it, without an engine yet."""

    cluster: EmbeddedCluster
    spark: SparkSession

    @contextmanager
    def steerable(self) -> Iterator[LocalCluster]:
        """With an engine and a supervisor of its own, until the block ends. Another one may follow in the same
        application: it finds no orders of this one."""
        settings = self.cluster.settings
        hosts = settings.addresses()
        with ExitStack() as ending:
            engine = SparkEngine(
                self.spark,
                {hosts[n.name]: n for n in settings.model_nodes()},
            )
            ending.callback(self._forget_orders, engine)
            supervisor = Supervisor(self.spark, engine=engine)
            ending.callback(supervisor.close)
            yield LocalCluster(self.cluster, self.spark, engine, supervisor)

    def _forget_orders(self, engine: SparkEngine) -> None:
        """Orders outlive the queries they were for."""
        bridge = Bridge(self.spark)
        bridge.order({name: ({}, ()) for name in engine.known}, ())
        bridge.rest(())
        bridge.pace({})
        bridge.share({})
        bridge.enforce(AUTO)


@contextmanager
def open_cluster_session(
    settings: ClusterSettings | None = None, conf: Mapping[str, str] = MappingProxyType({})
) -> Iterator[OpenSession]:
    """A running cluster and an application on it that end with the block. conf: overrides Barograph's settings."""
    settings = settings or ClusterSettings(nodes=3, seats=8)
    with start_cluster(settings) as cluster:
        spark = open_session("barograph local cluster", with_testing_jar(), cluster.session_conf(), conf)
        try:
            await_executors(spark, settings.nodes * settings.executors)
            yield OpenSession(cluster, spark)
        finally:
            spark.stop()


@contextmanager
def open_local_cluster(
    settings: ClusterSettings | None = None, conf: Mapping[str, str] = MappingProxyType({})
) -> Iterator[LocalCluster]:
    """A running cluster with an application, its engine and its supervisor; all end with the block."""
    with open_cluster_session(settings, conf) as session, session.steerable() as opened:
        yield opened
