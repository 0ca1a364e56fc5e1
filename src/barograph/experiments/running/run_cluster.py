"""The cluster of a run: one of its own, one that is already running, or any standalone cluster."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import SparkSession

from barograph.config import resolve
from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.clock_speed import machine_clock
from barograph.engines.spark.cluster.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.node_status import fence_run, lift_run, status_of
from barograph.engines.spark.cluster.quiet_nodes import await_quiet, cpu_s, executors_pids
from barograph.engines.spark.cluster.runs import Run, run_of
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.executors.embedded import fetch_all
from barograph.engines.spark.session import await_executors, await_steady
from barograph.experiments.running.warm_up import RunFailed
from barograph.model import Node


@dataclass(frozen=True, slots=True)
class RunCluster:
    """conf: for the Spark session. nodes: by host, as far as they are declared. run: the embedded cluster as it was
    recorded when it was opened; None of any other cluster, where nodes are hosts."""

    conf: dict[str, str]
    nodes: dict[str, Node]
    run: Run | None

    def fence(self) -> None:
        """Limit each node to its CPU; those of another cluster are as large as they are."""
        if self.run is not None:
            fence_run(self.run)

    def await_compiled(self) -> None:
        """Until executors have compiled what a warm-up ran; those of another cluster are not waited for."""
        if self.run is not None:
            pids = executors_pids(self.run)
            await_quiet(lambda: cpu_s(pids))

    def await_executors(self, spark: SparkSession) -> None:
        """Until the nodes that are alive have their executors."""
        if self.run is None:
            if await_steady(spark) == 0:
                raise RunFailed(
                    f"no executor of {self.conf['spark.master']} came up: either it has no room for one, or they do "
                    "not reach this machine (spark.driver.host in --properties-file); the log says more"
                )
            return
        now = runs.read(self.run.folder) or self.run
        await_executors(spark, now.settings.executors * sum(1 for node in status_of(now) if node.alive))


def open_run_cluster(
    settings: ClusterSettings,
    master: str | None,
    ending: ExitStack,
    say: Callable[[str], None],
    conf: Mapping[str, str],
) -> RunCluster:
    """Start a cluster from ``settings``, which ends with the run, or take the one at ``master``. conf: the run's own
    settings of Spark, with those of the cluster's keeper."""
    found = None if master is None else run_of(master)
    if master is not None and found is None:
        return RunCluster({"spark.master": master}, {}, None)
    if found is None:
        say(f"starting {settings.nodes} nodes")
        cluster = ending.enter_context(start_cluster(settings))
        ending.callback(NodeKeeper(cluster, resolve(spark=conf)["executor.hung-after"]).close)
    else:
        cluster = EmbeddedCluster(found, find_java())
        fetch_all(found)  # nodes that a killed driver had released
        lift_run(found)  # executors start without a limit; it is set again before the first row
    if not machine_clock().known:
        say(f"the nodes' clock speed is {machine_clock().origin}")
    run = cluster.run
    hosts = run.settings.addresses()
    return RunCluster(cluster.session_conf(), {hosts[n.name]: n for n in run.settings.model_nodes()}, run)
