"""A policy's plans take effect in its own way on a real cluster, ordered by a controller process."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barograph.control.process import ControllerConfig, keep
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.history.read import cycles
from barograph.model import Cycle, Placement, Slot
from barograph.priority.service import serve
from barograph.testing.local_cluster import LocalCluster, open_local_cluster
from barograph.workloads import wordcount

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARALLELISM = {"source": 1, "split": 1, "count": 2}
INSTANCES = list(wordcount.topology(PARALLELISM).instances())


@pytest.fixture(scope="module")
def stage() -> Iterator[LocalCluster]:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="barograph-state-") as state:
        patch.setenv("BAROGRAPH_STATE", state)
        with open_local_cluster(ClusterSettings(nodes=2, seats=8)) as opened:
            yield opened


@pytest.mark.parametrize("way", ["warm-cut", "boundary", "restart-query", "worker"])
def test_a_plan_takes_effect_as_the_policy_says(stage: LocalCluster, tmp_path: Path, way: str) -> None:
    """All begin on one node. ``even`` wants two workers in use, so it deals the instances anew."""
    topology = wordcount.topology(PARALLELISM)
    stage.engine.place_first(topology, Placement(dict.fromkeys(INSTANCES, Slot("node-1", 0))))
    endpoint = stage.supervisor.endpoint or serve(stage.supervisor)
    with stage.query(rate=300, parallelism=PARALLELISM, epoch_s=15.0, supervised=True) as counting:
        before, executors = counting.epoch(), set(counting.executors().values())
        runs = {e.run for e in stage.engine.epochs(topology.name)}
        assert len(executors) == 1
        config = ControllerConfig(
            str(endpoint.path), str(tmp_path / "history"), str(tmp_path / "beat"), "even", 1.0, options={"mode": way},
            recovery_s=None, release_after_s=None,
        )  # fmt: skip
        with keep(config, tmp_path / "log"):
            counting.settle(lambda: len(set(counting.executors().values())) == 2, 120.0)
        made = change(list(cycles(tmp_path / "history")))
        assert made.plan.mode == way
        assert made.outcome is not None and made.outcome.ok, made.outcome
        assert made.outcome.moves > 0
        lives = {e.run for e in stage.engine.epochs(topology.name)} - runs
        gone = executors - {w.executor for w in stage.engine.workers()}
        assert bool(lives) == (way in ("restart-query", "worker")), "only these restart the query"
        assert bool(gone) == (way == "worker"), "only this replaces a process"
        if way == "boundary":
            assert made.outcome.order_to_commit_s is None, "nothing is waited for"
        assert counting.epoch() > before
        assert isinstance(counting.query, Supervised) and not counting.query.restarts, "no way repeats a row"
        assert counting.verdict().exact


def change(found: list[Cycle]) -> Cycle:
    """The first cycle that moved something."""
    return next(c for c in found if c.plan.placement and c.outcome is not None)
