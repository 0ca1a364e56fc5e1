"""The cluster of a run: one of its own, or one that is already running."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.clock_speed import machine_clock
from barograph.engines.spark.cluster.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.node_release import fetch_all
from barograph.engines.spark.cluster.node_status import fence_run, lift_run, status_of
from barograph.engines.spark.cluster.runs import Run, run_of
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.model import Node


@dataclass(frozen=True, slots=True)
class RunCluster:
    """conf: for the Spark session. nodes: by host. run: the cluster as it was recorded when it was opened."""

    conf: dict[str, str]
    nodes: dict[str, Node]
    run: Run

    def fence(self) -> None:
        """Limit each node to its CPU."""
        fence_run(self.run)

    def executors(self) -> int:
        """The executors that the nodes which are alive now will have."""
        now = runs.read(self.run.folder) or self.run
        return now.settings.executors * sum(1 for node in status_of(now) if node.alive)


def open_run_cluster(
    settings: ClusterSettings, master: str | None, ending: ExitStack, say: Callable[[str], None]
) -> RunCluster:
    """Start a cluster from ``settings``, which ends with the run, or take the one at ``master``."""
    if master is None:
        say(f"starting {settings.nodes} nodes")
        cluster = ending.enter_context(start_cluster(settings))
        ending.callback(NodeKeeper(cluster).close)
    else:
        found = run_of(master)
        assert found is not None, "the run was checked before"
        cluster = EmbeddedCluster(found, find_java())
        fetch_all(found)  # nodes that a killed driver had released
        lift_run(found)  # executors start without a limit; it is set again before the first row
    if not machine_clock().known:
        say(f"the nodes' clock speed is {machine_clock().origin}")
    run = cluster.run
    hosts = run.settings.addresses()
    return RunCluster(cluster.session_conf(), {hosts[n.name]: n for n in run.settings.model_nodes()}, run)
