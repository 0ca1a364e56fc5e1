"""The stateful operator gets another number of instances under the same handle; every row is counted once."""

import json
from pathlib import Path

import pytest

from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import Instance, Placement, Plan, Rescale, Slot
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = pytest.mark.spark
COUNT = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    return shared_stage


def counts(counting: RunningQuery) -> int:
    return len([i for i in counting.executors() if i.startswith("count/")])


def flows(counting: RunningQuery) -> None:
    before = counting.output()
    counting.settle(lambda: bool(counting.executors()) and counting.output() > before)


def test_a_stateful_operator_is_scaled_up_and_down_and_moved_with_one_plan(stage: LocalCluster) -> None:
    with stage.query(supervised=True) as counting:
        query = counting.query
        assert isinstance(query, Supervised)
        first = query.runId
        for count in (5, 2):
            target = Instance("wordcount", "count", count - 1)
            plan = Plan(Placement({target: Slot("node-2")}), (Rescale("wordcount", "count", count),))
            outcome = stage.engine.apply(plan)
            assert outcome.ok, outcome.refused
            assert outcome.order_to_commit_s
            assert counts(counting) == count
            assert stage.engine.observe().placement[target].node == "node-2"
            flows(counting)
        assert query.runId != first
        assert query.isActive
        assert query.exception() is None
        assert query.restarts == ()
        stateless = stage.engine.apply(Plan(rescales=(Rescale("wordcount", "split", 3),)))
        assert stateless.ok, stateless.refused
        assert counts(counting) == 2
        assert counting.verdict().exact
    after = stage.engine.observe()
    assert after.topologies == ()


def test_what_the_driver_left_unfinished_is_finished_when_it_is_started_again(stage: LocalCluster) -> None:
    with stage.query(supervised=True) as counting:
        assert counting.verdict().exact
        leave_unfinished(counting.checkpoint, 4)
        with stage.continued(counting) as again:
            again.settle(lambda: counts(again) == 4, 90.0)
            flows(again)
            assert again.verdict().exact


def test_a_failed_repartition_leaves_the_query_as_it_was(stage: LocalCluster) -> None:
    with stage.query(supervised=True) as counting:
        metadata = counting.checkpoint / "state" / "0" / "_metadata" / "metadata"
        flows(counting)
        assert stage.engine.apply(Plan(cuts=("wordcount",))).ok
        whole = metadata.read_text()
        (metadata.parent / ".metadata.crc").unlink(missing_ok=True)
        metadata.write_text(whole.replace("StatefulStreamlineAggregate", "unknownOperator"))
        assert "unknownOperator" in metadata.read_text()
        outcome = stage.engine.apply(Plan(rescales=(Rescale("wordcount", "count", 4),)))
        assert not outcome.ok
        assert "goes on as it was" in outcome.refused[0].reason
        metadata.write_text(whole)
        counting.settle(lambda: counts(counting) == 3, 90.0)
        flows(counting)
        assert counting.verdict().exact


def leave_unfinished(checkpoint: Path, count: int) -> None:
    """Leave what a driver that dies during a repartition leaves: an epoch that is begun and not committed."""
    last = last_committed_epoch(checkpoint)
    assert last is not None
    version, metadata, *offsets = (checkpoint / "offsets" / str(last)).read_text().splitlines()
    told = json.loads(metadata)
    assert told["conf"][COUNT] != str(count)
    told["conf"][COUNT] = str(count)
    (checkpoint / "offsets" / str(last + 1)).write_text("\n".join([version, json.dumps(told), *offsets]))
