"""A second observer beside the controller changes no decision, whenever it looks."""

import random

import pytest
from tests.control.test_loop import AT_ONCE, SCENARIO, settings

from barograph.control.loop import Loop
from barograph.engines.port import CONTROLLER
from barograph.engines.sim import Simulator, parse_scenario
from barograph.model import Cycle, Outcome, Plan, Snapshot
from barograph.model.codec import to_json

CYCLES = 20


class Steered:
    """A simulation that stops at random moments of each cycle and around each plan. looks: whether there is a second
    observer, which looks at each stop."""

    def __init__(self, grain: str, looks: bool) -> None:
        self.sim = Simulator(parse_scenario(SCENARIO, "second observer"), seed=3, grain=grain)
        self._chance, self._looks = random.Random(5), looks
        self.seen: list[Snapshot] = []
        self.sim.start()

    def _stop(self) -> None:
        if self._looks:
            self.seen.append(self.sim.observe("second"))

    def observe(self, observer: str = CONTROLLER) -> Snapshot:
        end_s = self.sim.now_s + 5.0
        while self._chance.random() < 0.7:
            self.sim.advance(self._chance.random() * (end_s - self.sim.now_s))
            self._stop()
        self.sim.advance(end_s - self.sim.now_s)
        return self.sim.observe(observer)

    def apply(self, plan: Plan) -> Outcome:
        self._stop()
        outcome = self.sim.apply(plan)
        self._stop()
        return outcome


def steer(grain: str, looks: bool) -> tuple[list[Cycle], Steered]:
    engine = Steered(grain, looks)
    loop = Loop(engine, settings(quiet=AT_ONCE))
    return [loop.turn() for _ in range(CYCLES)], engine


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_no_decision_depends_on_it(grain: str) -> None:
    alone, _ = steer(grain, looks=False)
    watched, engine = steer(grain, looks=True)
    assert [to_json(c) for c in watched] == [to_json(c) for c in alone], "equal to the last bit"
    assert any(c.plan.placement or c.plan.rescales for c in alone), "something was decided"
    assert len(engine.seen) > 2 * CYCLES


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_it_sees_every_row(grain: str) -> None:
    cycles, engine = steer(grain, looks=True)
    engine.seen.append(engine.sim.observe("second"))
    last = engine.sim.observe()
    snapshots = [*(c.snapshot for c in cycles), last]
    for of in (lambda s: s.metrics.of_operator("t", "s").executed, lambda s: s.topology_metrics[0].completed_rows):
        mine, theirs = (sum(map(of, found)) for found in (engine.seen, snapshots))
        assert mine == pytest.approx(theirs, rel=1e-9)
        assert mine > 0
