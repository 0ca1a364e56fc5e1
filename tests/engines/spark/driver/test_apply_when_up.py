"""A plan for a query that is being restarted waits for it; so does one whose query dies just before it is applied."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from barograph.engines.spark.driver.apply_when_up import apply_when_up
from barograph.model import Instance, Outcome, Placement, Plan, Refusal, RefusalCode, Slot

PLAN = Plan(Placement({Instance("counting", "count", 1): Slot("node-2", 0)}))
UNKNOWN = Outcome(refused=(Refusal("move", RefusalCode.NO_SUCH_TOPOLOGY, "there is no topology 'counting'"),))
FULL = Outcome(refused=(Refusal("worker", RefusalCode.WORKER_FULL, "it has 8 seats"),))
DONE = Outcome(done=("moved counting/count/1",), moves=1)


@dataclass
class Clock:
    at_s: float = 0.0

    def now(self) -> float:
        return self.at_s

    def wait(self, seconds: float) -> None:
        self.at_s += seconds


@dataclass
class FakeQuery:
    """up_at_s: when its present restart is over."""

    clock: Clock
    topology: str = "counting"
    isActive: bool = True  # noqa: N815  # Spark's name
    up_at_s: float = 0.0

    def await_up(self, timeout_s: float) -> bool:
        if self.up_at_s > self.clock.at_s:
            self.clock.wait(min(timeout_s, self.up_at_s - self.clock.at_s))
        return self.up_at_s <= self.clock.at_s


@dataclass
class FakeEngine:
    """Answers one outcome after the other, the last of them again and again. before: done before each answer."""

    outcomes: list[Outcome]
    before: Callable[[], object] = lambda: None
    asked: int = field(default=0, init=False)

    def apply(self, plan: Plan) -> Outcome:
        assert plan is PLAN
        self.before()
        self.asked += 1
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]


def applied(engine: FakeEngine, clock: Clock, *queries: FakeQuery) -> Outcome:
    return apply_when_up(engine.apply, PLAN, queries, 120.0, clock.now, clock.wait)


def test_it_waits_for_a_query_that_is_being_restarted() -> None:
    clock, engine = Clock(), FakeEngine([DONE])
    assert applied(engine, clock, FakeQuery(clock, up_at_s=7.0)) == DONE
    assert (engine.asked, clock.at_s) == (1, 7.0)


def test_a_query_that_dies_just_before_the_engine_applies_the_plan_is_waited_for() -> None:
    clock = Clock()
    query = FakeQuery(clock)

    def die() -> None:
        query.up_at_s = 3.0 if clock.at_s < 3.0 else query.up_at_s

    engine = FakeEngine([UNKNOWN, DONE], die)
    assert applied(engine, clock, query) == DONE
    assert engine.asked == 2
    assert clock.at_s == pytest.approx(3.0, abs=0.1)


def test_a_death_that_is_not_noticed_yet_does_not_end_the_wait() -> None:
    clock, engine = Clock(), FakeEngine([UNKNOWN, UNKNOWN, UNKNOWN, DONE])
    assert applied(engine, clock, FakeQuery(clock)) == DONE
    assert clock.at_s > 0, "it asks again and again without a pause"


def test_the_wait_has_an_end() -> None:
    clock, engine = Clock(), FakeEngine([UNKNOWN])
    assert applied(engine, clock, FakeQuery(clock)) == UNKNOWN
    assert 120.0 <= clock.at_s < 121.0


def test_other_refusals_are_answered_at_once() -> None:
    clock, engine = Clock(), FakeEngine([FULL, DONE])
    assert applied(engine, clock, FakeQuery(clock)) == FULL


@pytest.mark.parametrize("topology", ["another", None], ids=["not the supervised one", "none is supervised"])
def test_a_topology_that_nothing_restarts_is_not_waited_for(topology: str | None) -> None:
    clock, engine = Clock(), FakeEngine([UNKNOWN, DONE])
    assert applied(engine, clock, *([FakeQuery(clock, topology)] if topology else [])) == UNKNOWN


def test_a_query_that_has_ended_is_not_waited_for() -> None:
    clock, engine = Clock(), FakeEngine([UNKNOWN, DONE])
    assert applied(engine, clock, FakeQuery(clock, isActive=False)) == UNKNOWN
