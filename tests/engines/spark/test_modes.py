"""Every way to move, as a policy orders it: a migrator's plan, written and read as on its way to the driver."""

from collections.abc import Iterator

import pytest

from barograph.experiments.stage import Counting, Stage, open_stage
from barograph.migrate.plan import Migrate
from barograph.model import Demand, Instance, MigrationMode, OperatorDemand, Outcome, Placement, Plan, Slot
from barograph.model.codec import from_json, to_json

pytestmark = pytest.mark.spark
SPLIT, COUNT = Instance("wordcount", "split", 0), Instance("wordcount", "count", 1)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with open_stage() as opened:
        yield opened


@pytest.fixture(scope="module")
def counting(stage: Stage) -> Iterator[Counting]:
    """One query for all modes, judged at the end over all that was done to it."""
    with stage.wordcount(epoch_s=8.0, supervised=True) as started:
        yield started
        verdict = started.verdict()
        assert verdict.exact, verdict


def ordered(counting: Counting, mode: MigrationMode, moves: dict[Instance, Slot]) -> Outcome:
    """What a policy with this migrator orders when it wants these instances there."""
    counting.settle(lambda: bool(counting.executors()))
    now = counting.stage.supervisor.observe()
    operators = now.topology("wordcount").operators
    wanted = (OperatorDemand("wordcount", o.name, o.parallelism, (0.0,) * o.parallelism) for o in operators)
    demand = Demand(tuple(wanted), enforced=False)
    plan = Migrate(mode, delay_s=1.0)((), now, demand, Placement({**now.placement.slots, **moves}))
    return counting.stage.supervisor.apply(from_json(Plan, to_json(plan)))


def elsewhere(counting: Counting, who: Instance) -> Slot:
    counting.settle(lambda: bool(counting.executors()))
    now = counting.stage.supervisor.observe()
    return min(w.slot for w in now.workers if w.slot != now.placement[who])


ORDERED = [mode for mode in MigrationMode if mode is not MigrationMode.RESTART_APP]


@pytest.mark.parametrize("mode", ORDERED)
def test_a_policys_plan_takes_effect_in_its_own_mode(counting: Counting, mode: MigrationMode) -> None:
    moves = {who: elsewhere(counting, who) for who in (SPLIT, COUNT)}
    query, executors = counting.query.runId, {w.executor for w in counting.stage.engine.observe().workers}
    outcome = ordered(counting, mode, moves)
    assert outcome.ok, outcome.refused
    engine = counting.stage.engine
    counting.settle(lambda: all(engine.observe().placement.get(who) == slot for who, slot in moves.items()), 120.0)
    restarts = mode in (MigrationMode.RESTART_QUERY, MigrationMode.WORKER)
    assert (counting.query.runId != query) == restarts
    replaced = {w.executor for w in engine.observe().workers} - executors
    assert bool(replaced) == (mode is MigrationMode.WORKER)


def test_no_policy_can_start_its_own_application_again(counting: Counting) -> None:
    before = counting.stage.supervisor.observe().placement
    outcome = ordered(counting, MigrationMode.RESTART_APP, {COUNT: elsewhere(counting, COUNT)})
    (refusal,) = outcome.refused
    assert refusal.what == "mode restart-app"
    assert "an application cannot start itself again" in refusal.reason
    assert counting.stage.supervisor.observe().placement == before
