"""A node whose executor dies again and again soon after it got instances gets them back later each time.

Real executors are killed, so each wait is at least as long as ``node_returns`` says; its arithmetic has unit tests.
"""

import time

import pytest

from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.driver.status import describe
from barograph.engines.spark.orders.node_returns import COLD_S
from barograph.model import Instance, Placement, Plan, Slot
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("all_executors")]
NODE = "node-2"
LATE_S = 5.0  # the test may notice a new executor so much later than the engine


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: it is started again in part, which needs its folder."""


def executor_of(stage: LocalCluster) -> str | None:
    return next((w.executor for w in stage.engine.workers() if w.slot.node == NODE), None)


def deaths_told(stage: LocalCluster) -> int:
    return next(int(n["deaths_in_a_row"]) for n in describe(stage.supervisor)["nodes"] if n["name"] == NODE)


def lose(stage: LocalCluster, counting: RunningQuery, told: int) -> float:
    """Kill the node's executor, which has instances. Returns how long the next one was there before it got them.

    told: the deaths in a row that the status tells meanwhile; 0 while the node is not held back."""
    lost = executor_of(stage)
    assert lost is not None and lost in counting.executors().values()
    kill_executor(stage.cluster.run, NODE, lost)
    counting.settle(lambda: executor_of(stage) not in (None, lost), 120.0)
    since_s, fresh = time.monotonic(), executor_of(stage)
    counting.settle(lambda: deaths_told(stage) == told)
    counting.settle(lambda: fresh in counting.executors().values(), 180.0)
    return time.monotonic() - since_s


def test_instances_return_later_after_each_death(kept_stage: LocalCluster) -> None:
    stage = kept_stage
    with stage.query("flapping", epoch_s=5.0, supervised=True) as counting:
        ordered = Plan(Placement({Instance("flapping", "count", 1): Slot(NODE)}))
        outcome = stage.supervisor.apply(ordered)
        assert outcome.ok, outcome.refused
        counting.settle(lambda: executor_of(stage) in counting.executors().values())
        assert lose(stage, counting, told=0) >= COLD_S - LATE_S
        assert lose(stage, counting, told=2) >= 2 * COLD_S - LATE_S
        verdict = counting.verdict()
        assert verdict.exact, verdict
