"""Orders that workers poll for: how far apart they get them, what that stops, and that pushed orders avoid it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.engines.sim import Simulator, parse_scenario, read_calibration
from barograph.engines.sim.world.sync import Heard, Sync, heard
from barograph.model import BadInput, Instance, MigrationMode, Placement, Plan, Slot

SLOTS = [Slot(f"n-{k}", i) for k in (1, 2) for i in range(4)]
CAL = read_calibration()


@given(st.floats(0, 20), st.floats(0, 5), st.integers(0, 2**32), st.sets(st.sampled_from(SLOTS)))
def test_every_worker_hears_within_one_cycle_of_each(
    node_s: float, worker_s: float, seed: int, slots: set[Slot]
) -> None:
    found = heard(Sync(node_s, worker_s), slots, np.random.default_rng(seed))
    assert 0 <= found.first_s <= found.last_s <= node_s + worker_s
    if len({s.node for s in slots}) <= 1:
        assert found.last_s - found.first_s <= worker_s + 1e-9


def test_a_pushed_order_is_known_at_once() -> None:
    assert heard(None, SLOTS, np.random.default_rng(1)) == Heard(0.0, 0.0)
    assert heard(Sync(10, 3), [], np.random.default_rng(1)) == Heard(0.0, 0.0)


def test_cycles_are_no_less_than_nothing() -> None:
    with pytest.raises(BadInput, match=r"sync\.worker_s must be a number of at least 0"):
        Sync(1, -1)


SCENARIO = """
name = "two"
title = "source and sink on two nodes"
duration_s = 1000
epoch_s = 900
step_s = 0.1
[sync]
node_s = 10
worker_s = 3
[[nodes]]
name = "node"
count = 2
cpu_pct = 200
seats = 4
[[topologies]]
name = "t"
operators = [
  {name = "source", parallelism = 1, load = "constant 100", cost_ms = 0.1},
  {name = "sink", parallelism = 1, cost_ms = 1, stateful = true, state_mb = 10},
]
edges = [{source = "source", target = "sink"}]
"""
SINK = Instance("t", "sink", 0)
STATE_S = CAL.state_load_s + 10 / CAL.state_load_mb_per_s
WARM_S = CAL.cold_start_s + STATE_S


def moved(mode: MigrationMode, seed: int, delay_s: float = 0.0, text: str = SCENARIO) -> tuple[Simulator, Heard]:
    """An engine in which the sink was ordered to the other node, and when its two workers hear of that."""
    engine = Simulator(parse_scenario(text, "two"), seed, grain="flows")
    engine.advance(5.0)
    here = engine.layout.placement[SINK]
    there = Slot("node-2" if here.node == "node-1" else "node-1")
    told = heard(engine.scenario.sync, [here, there], np.random.default_rng([seed, 11]))
    assert engine.apply(Plan(Placement({SINK: there}), mode=mode, delay_s=delay_s)).ok
    engine.advance(40.0)
    assert engine.layout.placement[SINK] == there
    return engine, told


@pytest.mark.parametrize("seed", range(4))
def test_the_topology_stands_still_from_the_first_that_hears_to_the_last(seed: int) -> None:
    engine, told = moved(MigrationMode.BOUNDARY, seed)
    apart_s = told.last_s - told.first_s
    wanted_s = max(apart_s - CAL.cut_order_s, 0.0) + CAL.boundary_s + STATE_S + CAL.cold_start_s
    assert engine.totals.stopped_s[0] == pytest.approx(wanted_s, abs=0.15)
    (stop,) = engine.totals.stops[0]
    assert stop[0] == pytest.approx(5.0 + told.first_s + CAL.cut_order_s, abs=0.15)


@pytest.mark.parametrize("delay_s", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_an_old_instance_that_lives_on_for_a_while_bridges_the_gap(seed: int, delay_s: float) -> None:
    """N-Storm+: the cut waits for the delay, and after it only for workers that have not heard and prepared by then."""
    engine, told = moved(MigrationMode.WARM_CUT, seed, delay_s)
    cut_s = told.first_s + max(delay_s, WARM_S) + CAL.cut_order_s
    wanted_s = max(0.0, told.last_s + WARM_S - cut_s) + CAL.boundary_s
    assert engine.totals.stopped_s[0] == pytest.approx(wanted_s, abs=0.15)


def test_without_cycles_a_delay_puts_the_cut_off_and_stops_nothing_more() -> None:
    pushed = SCENARIO.replace("[sync]\nnode_s = 10\nworker_s = 3\n", "")
    found = {d: moved(MigrationMode.WARM_CUT, 0, d, pushed)[0] for d in (0.0, 2.0)}
    for delay_s, engine in found.items():
        (stop,) = engine.totals.stops[0]
        assert stop[0] == pytest.approx(5.0 + max(WARM_S, delay_s) + CAL.cut_order_s, abs=0.1)
        assert engine.totals.stopped_s[0] == pytest.approx(CAL.boundary_s, abs=0.1)


def test_an_epoch_that_ends_before_the_first_has_heard_takes_nothing_along() -> None:
    engine, _ = moved(MigrationMode.WARM_CUT, 0, 20.0, SCENARIO.replace("epoch_s = 900", "epoch_s = 8"))
    first, *later = engine.totals.stops[0]
    assert first[0] == pytest.approx(8.0, abs=0.2)
    assert first[1] - first[0] < CAL.boundary_s + 0.3
    assert later
    assert engine.totals.moves == 1


def test_a_change_that_is_under_way_at_the_end_of_the_run_does_not_lengthen_it() -> None:
    engine = Simulator(parse_scenario(SCENARIO.replace("duration_s = 1000", "duration_s = 20"), "two"), grain="flows")
    engine.advance(18.0)
    there = next(s for s in engine.workers if s != engine.layout.placement[SINK])
    outcome = engine.apply(Plan(Placement({SINK: there}), mode=MigrationMode.RESTART_APP))
    assert outcome.ok
    assert outcome.order_to_commit_s is None
    assert engine.now_s == pytest.approx(20.0)
