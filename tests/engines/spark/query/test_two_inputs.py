"""A workload with two inputs and a join, through a move, two scales and a kill: each row is counted once."""

import pytest

from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import Instance, Placement, Plan, Rescale, Slot
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.campaigns import NAME, WORKLOAD

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("all_executors")]


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: it is started again in part, which needs its folder."""


@pytest.mark.slow
def test_the_verdict_is_exact_with_moves_scales_and_a_kill(kept_stage: LocalCluster) -> None:
    stage = kept_stage
    with stage.query(workload=WORKLOAD, supervised=True) as counting:
        query = counting.query
        assert isinstance(query, Supervised)
        for plan in (
            Plan(Placement({Instance(NAME, "count", 1): Slot("node-2")})),
            Plan(rescales=(Rescale(NAME, "enrich", 4),)),
            Plan(rescales=(Rescale(NAME, "count", 4),)),
        ):
            outcome = stage.supervisor.apply(plan)
            assert outcome.ok, outcome.refused
            counting.settle(lambda: bool(counting.executors()), 120.0)
        counts = {o: sum(i.startswith(f"{o}/") for i in counting.executors()) for o in ("source", "enrich", "count")}
        assert counts == {"source": 2, "enrich": 4, "count": 4}
        victim = counting.executors()["source/0"]
        node = next(w.slot.node for w in stage.engine.workers() if w.executor == victim)
        kill_executor(stage.cluster.run, node, victim)
        counting.settle(lambda: any("lost executor" in r.cause for r in query.restarts), 120.0)
        out = counting.output()
        counting.settle(lambda: counting.output() > out + 100, 120.0)
        verdict = counting.verdict()
        assert verdict.exact, verdict
