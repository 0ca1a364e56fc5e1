"""A real executor is decommissioned during a word count: its instances leave, it ends by itself, no row is lost."""

import signal

import pytest

from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.processes import alive, send
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import Slot
from barograph.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.spark
LONG_S = 600.0  # so that no epoch ends by itself


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: an executor of it is replaced."""


@pytest.mark.slow
def test_instances_leave_before_a_decommissioned_executor_ends(kept_stage: LocalCluster) -> None:
    stage = kept_stage
    with stage.query(supervised=True, epoch_s=LONG_S) as counting:
        before = {w.executor: w.slot for w in stage.engine.workers()}
        left = counting.executors()["count/0"]
        slot, epoch = before[left], counting.epoch()
        process = executors_of(stage.cluster.run, slot.node, stage.engine.application)[left]
        assert send(process, signal.SIGPWR)  # what Kubernetes, or an operator, tells an executor that is to end
        counting.settle(lambda: left not in counting.executors().values() and bool(counting.executors()), 60.0)
        assert counting.epoch() == epoch + 1, "one cut, and the topology is elsewhere"
        out = counting.output()
        counting.settle(lambda: counting.output() > out + 500)
        counting.settle(lambda: not alive(process), 60.0)
        # The cluster starts another one in its place, which takes its slot.
        counting.settle(lambda: slot in slots(stage) and slots(stage)[slot] != left, 120.0)
        assert isinstance(counting.query, Supervised)
        assert counting.query.restarts == (), "the query did not fail"
        verdict = counting.verdict()
        assert verdict.exact, verdict


def slots(stage: LocalCluster) -> dict[Slot, str]:
    return {w.slot: w.executor for w in stage.engine.workers()}
