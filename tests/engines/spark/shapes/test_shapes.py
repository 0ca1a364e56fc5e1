"""Each shape of query, on a real cluster: moved, scaled, an executor killed, and its result exact."""

from contextlib import ExitStack

import pytest
from tests.engines.spark.shapes.running import running
from tests.engines.spark.shapes.shape import Shape
from tests.engines.spark.shapes.table import SHAPES

from barograph.model import Plan, RefusalCode, Rescale
from barograph.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("all_executors")]
BY_NAME = {shape.name: shape for shape in SHAPES}
TWO_STATES = BY_NAME["deduplication, then counts"]


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: it is started again in part, which needs its folder."""


@pytest.fixture(scope="module")
def stage(kept_stage: LocalCluster) -> LocalCluster:
    return kept_stage


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_a_shape_is_moved_scaled_and_killed_and_its_result_is_exact(stage: LocalCluster, shape: Shape) -> None:
    with running(stage, shape) as query:
        assert set(query.counts()) == set(shape.operators)
        for operator in shape.operators:
            query.move(operator)
        for operator in shape.live:
            query.scale(operator, 3)
            assert query.counts()[operator] == 3
        if shape.fixed is not None:
            operator, why = shape.fixed
            outcome = stage.supervisor.apply(Plan(rescales=(Rescale(query.name, operator, 3),)))
            assert [(r.code, r.reason) for r in outcome.refused] == [(RefusalCode.FIXED_PARALLELISM, why)]
        for operator in shape.kept[:1]:  # the others follow
            query.grow_by_policy(operator, 3)
            counts = query.counts()
            assert [counts[o] for o in shape.kept] == [3] * len(shape.kept), counts
        query.await_flow()
        query.kill(shape.operators[-1])
        for operator in shape.kept[-1:]:
            query.scale(operator, 2)
            counts = query.counts()
            assert [counts[o] for o in shape.kept] == [2] * len(shape.kept), counts
            query.await_flow()
        found = query.judged()
        assert found.faults == []
        assert bool(found.dropped) == bool(found.counted_late) == shape.late, found


@pytest.mark.parametrize("name", ["stateless", "aggregation", "windows", "deduplication", TWO_STATES.name])
def test_a_row_that_is_lost_on_its_way_is_noticed(stage: LocalCluster, name: str) -> None:
    """Of the deduplication a whole key has to be lost: another row of the key would take its place."""
    tamper = "value <> 6" if name in ("stateless", "deduplication") else "partition <> 1 or k <> 40"
    with running(stage, BY_NAME[name], tamper=tamper) as query:
        query.await_flow()
        assert query.judged().faults


def test_several_queries_of_one_application_are_changed_together_and_each_is_exact(stage: LocalCluster) -> None:
    with ExitStack() as ending:
        shapes = [BY_NAME[name] for name in ("stateless", "aggregation", "windows")]
        queries = [ending.enter_context(running(stage, shape)) for shape in shapes]
        for query in queries:
            query.move(query.shape.operators[-1])
        first, second, _ = queries
        plan = Plan(rescales=(Rescale(first.name, "keep", 3), Rescale(second.name, "count", 3)))
        second.apply(plan)
        assert first.counts()["keep"] == second.counts()["count"] == 3
        for query in queries:
            query.await_flow()
        second.kill("count")
        for query in queries:
            query.await_flow()
        for query in queries:
            assert query.judged().faults == [], query.name


@pytest.mark.parametrize("name", ["global aggregation", TWO_STATES.name])
def test_a_query_with_more_instances_than_seats_begins_with_fewer(stage: LocalCluster, name: str) -> None:
    """Spark's own default for shuffles is 200."""
    with running(stage, BY_NAME[name], partitions=200) as query:
        counts = query.counts()
        assert len({counts[operator] for operator in BY_NAME[name].kept}) <= 1, counts
        assert sum(counts.values()) <= 24
        query.kill(query.shape.operators[-1])
        assert query.judged().faults == []
