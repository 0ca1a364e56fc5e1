"""Where a run runs: a cluster of its own, or one that is up; its nodes by host, their fences, their keeper."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from barograph.engines.spark import runs
from barograph.engines.spark.clock import machine_clock
from barograph.engines.spark.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.java import find_java
from barograph.engines.spark.keeper import NodeKeeper
from barograph.engines.spark.nodes import fence_run, lift_run, status_of
from barograph.engines.spark.rota import fetch_all
from barograph.engines.spark.runs import Run, run_of
from barograph.engines.spark.settings import ClusterSettings
from barograph.model import Node


@dataclass(frozen=True, slots=True)
class Place:
    """run: the cluster as it was recorded when the place was opened."""

    conf: dict[str, str]
    nodes: dict[str, Node]
    run: Run

    def fence(self) -> None:
        fence_run(self.run)

    def executors(self) -> int:
        """How many there will be: as many as the nodes that are alive now can hold."""
        now = runs.read(self.run.folder) or self.run
        return now.settings.executors * sum(1 for node in status_of(now) if node.alive)


def open_place(settings: ClusterSettings, master: str | None, ending: ExitStack, say: Callable[[str], None]) -> Place:
    """A cluster started as ``settings`` say and ended with the run, or the one behind ``master``."""
    if master is None:
        say(f"starting {settings.nodes} nodes")
        cluster = ending.enter_context(start_cluster(settings))
        ending.callback(NodeKeeper(cluster).close)
    else:
        found = run_of(master)
        assert found is not None, "the run was checked before"
        cluster = EmbeddedCluster(found, find_java())
        fetch_all(found)  # what a driver that was killed had released
        lift_run(found)  # executors start without a limit; it holds again before the first row
    if not machine_clock().known:
        say(f"the nodes' clock speed is {machine_clock().origin}")
    run = cluster.run
    hosts = run.settings.addresses()
    return Place(cluster.session_conf(), {hosts[n.name]: n for n in run.settings.model_nodes()}, run)
