"""Every migration mode, ordered as a policy does: a migrator's plan, sent to the driver as JSON."""

from collections.abc import Iterator

import pytest

from barograph.migrate.plan import Migrate
from barograph.model import Demand, Instance, MigrationMode, OperatorDemand, Outcome, Placement, Plan, Slot
from barograph.model.codec import from_json, to_json
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = pytest.mark.spark
SPLIT, COUNT = Instance("wordcount", "split", 0), Instance("wordcount", "count", 1)


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    return shared_stage


@pytest.fixture(scope="module")
def counting(stage: LocalCluster) -> Iterator[RunningQuery]:
    """One query for all modes; its output is checked at the end."""
    with stage.query(epoch_s=8.0, supervised=True) as started:
        yield started
        verdict = started.verdict()
        assert verdict.exact, verdict


def ordered(counting: RunningQuery, mode: MigrationMode, moves: dict[Instance, Slot]) -> Outcome:
    """Apply the plan that a policy with this migration mode makes for these moves."""
    counting.settle(lambda: bool(counting.executors()))
    now = counting.cluster.supervisor.observe()
    operators = now.topology("wordcount").operators
    wanted = (OperatorDemand("wordcount", o.name, o.parallelism, (0.0,) * o.parallelism) for o in operators)
    demand = Demand(tuple(wanted), enforced=False)
    plan = Migrate(mode, delay_s=1.0)((), now, demand, Placement({**now.placement.slots, **moves}))
    return counting.cluster.supervisor.apply(from_json(Plan, to_json(plan)))


def elsewhere(counting: RunningQuery, instance: Instance) -> Slot:
    counting.settle(lambda: bool(counting.executors()))
    now = counting.cluster.supervisor.observe()
    return min(w.slot for w in now.workers if w.slot != now.placement[instance])


ORDERED = [mode for mode in MigrationMode if mode is not MigrationMode.RESTART_APP]


@pytest.mark.parametrize("mode", ORDERED)
def test_a_policys_plan_takes_effect_in_its_own_mode(counting: RunningQuery, mode: MigrationMode) -> None:
    moves = {instance: elsewhere(counting, instance) for instance in (SPLIT, COUNT)}
    query, executors = counting.query.runId, {w.executor for w in counting.cluster.engine.observe().workers}
    outcome = ordered(counting, mode, moves)
    assert outcome.ok, outcome.refused
    engine = counting.cluster.engine
    counting.settle(lambda: all(engine.observe().placement.get(i) == slot for i, slot in moves.items()), 120.0)
    restarts = mode in (MigrationMode.RESTART_QUERY, MigrationMode.WORKER)
    assert (counting.query.runId != query) == restarts
    replaced = {w.executor for w in engine.observe().workers} - executors
    assert bool(replaced) == (mode is MigrationMode.WORKER)


def test_no_policy_can_restart_its_own_application(counting: RunningQuery) -> None:
    before = counting.cluster.supervisor.observe().placement
    outcome = ordered(counting, MigrationMode.RESTART_APP, {COUNT: elsewhere(counting, COUNT)})
    (refusal,) = outcome.refused
    assert refusal.what == "mode restart-app"
    assert "an application cannot restart itself" in refusal.reason
    assert counting.cluster.supervisor.observe().placement == before
