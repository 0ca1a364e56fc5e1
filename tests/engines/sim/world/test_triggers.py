"""Triggers in the simulator: when they turn, what they do under policies that heed them, and what rests meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import Result, Simulator, parse_scenario
from barograph.engines.sim.world.triggers import above_for
from barograph.model import BadInput, Instance, Load, Placement, Plan, Slot

USE_CASE = """
name = "small"
title = "an event topology and an archival one that desire five of three nodes"
duration_s = 260
epoch_s = 900
cycle_s = 5
step_s = 0.25
[[nodes]]
name = "node"
count = 3
cpu_pct = 100
slots = 2
[[topologies]]
name = "event"
workers = 3
level = 1
desired_nodes = 3
minimum_nodes = 2
producers = 3
trigger = {events = [4, 8]}
operators = [
  {name = "source", parallelism = 3, load = "batches rows=60 every=10s count=16 within=1s", cost_ms = 0.1},
  {name = "detect", parallelism = 3, cost_ms = 100, stateful = true, state_mb = 1},
]
edges = [{source = "source", target = "detect", grouping = "direct"}]
[[topologies]]
name = "archive"
workers = 2
desired_nodes = 2
minimum_nodes = 1
producers = 3
operators = [
  {name = "source", parallelism = 2, load = "batches rows=60 every=10s count=16 within=1s", cost_ms = 0.1},
  {name = "write", parallelism = 2, cost_ms = 60},
]
edges = [{source = "source", target = "write", grouping = "direct"}]
"""
ROWS = 16 * 60


def small(policy: str, text: str = USE_CASE, grain: str = "rows") -> Result:
    return rehearse(parse_scenario(text, "small"), policy, grain=grain)


SHAPES = {
    "steps": ("steps 0s=10 20s=50 50s=10", [(23, True), (50, False)]),
    "too short": ("steps 0s=10 20s=50 22s=10", []),
    "two steps are one span": ("steps 0s=10 20s=50 22s=60 40s=10", [(23, True), (40, False)]),
    "a ramp": ("ramp 0s=0 50s=100 100s=0", [(23, True), (80, False)]),
    "from the start": ("onoff high=50 low=0 share=0.5 period=40s", [(3, True), (20, False), (43, True), (60, False)]),
    "never": ("constant 40", []),
}


@pytest.mark.parametrize("case", SHAPES)
def test_a_trigger_is_on_three_seconds_after_the_load_and_off_with_it(case: str) -> None:
    text, expected = SHAPES[case]
    assert above_for(Load.parse(text).segments(80), 40.0, 3.0) == pytest.approx(expected)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.floats(0, 25))
def test_triggers_turn_on_and_off_in_turn(rates: list[int], seconds: float) -> None:
    text = "steps " + " ".join(f"{10 * i}s={rate}" for i, rate in enumerate(rates))
    turns = above_for(Load.parse(text).segments(10 * len(rates)), 50.0, seconds)
    assert [on for _, on in turns] == [True, False] * (len(turns) // 2)
    assert [at_s for at_s, _ in turns] == sorted(at_s for at_s, _ in turns)


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_dynamic_priorities_starve_the_archive_for_as_long_as_events_last_and_lose_nothing(grain: str) -> None:
    found = small("dps", grain=grain)
    event, archive = found.topologies
    assert found.reconfigurations == 2 and found.lost_rows == 0
    assert archive.starved_s == pytest.approx(40.0, abs=3.0), "four batches of 10 s"
    assert event.starved_s == 0
    assert (event.completed_rows, archive.completed_rows) == pytest.approx((ROWS, ROWS))
    assert event.unread_rows == archive.unread_rows == 0, "it has caught up"
    assert archive.complete_time_ms.max > 30_000, "rows waited while it starved"
    assert found.priority is not None
    assert [o.topology for o in found.priority.overheads] == ["event", "event"]
    for change in found.priority.overheads:
        assert 0 < change.drain_s < change.overhead_s < 5.0


def test_static_priorities_know_no_triggers() -> None:
    found = small("sps")
    assert (found.reconfigurations, found.moves, found.lost_rows) == (0, 0, 0)
    assert [t.starved_s for t in found.topologies] == [0, 0]
    assert [t.stopped_s for t in found.topologies] == [0, 0], "nothing pauses"
    assert found.priority is not None and found.priority.overheads == () and found.priority.overhead_mean_s == 0


def test_levels_start_as_the_developer_says_or_calm() -> None:
    engine = Simulator(parse_scenario(USE_CASE, "small"))
    levels = []
    for heeds in (False, True):
        engine.priorities.heed_triggers(heeds)
        levels.append([t.level for t in engine.topologies])
    assert levels == [[1, 2], [2, 2]]


def held() -> Simulator:
    engine = Simulator(parse_scenario(USE_CASE, "small"))
    engine.priorities.heed_triggers(True)
    engine.advance(100.0)
    return engine


def test_a_topology_whose_trigger_turns_is_drained_and_waits_for_its_plan() -> None:
    engine = held()
    assert engine.priorities.held == [0] and 40 < engine.now_s < 55
    assert engine.topologies[0].level == 1
    assert engine.grain.drained(0, engine.now_s) is not None
    now_s = engine.now_s
    engine.advance(1.0)
    assert engine.now_s == now_s, "time does not go on before the plan came"
    seen = engine.glance()
    assert seen.version == engine.version and seen.topologies[0].level == 1
    engine.priorities.release([0])
    engine.advance(1.0)
    assert engine.now_s == now_s + 1.0 and engine.priorities.held == []
    (passed,) = engine.priorities.triggers.passed
    assert passed.overhead_s == passed.drain_s == pytest.approx(now_s - passed.asked_s)


def test_the_plan_for_the_new_level_moves_the_topology_that_waits_for_it() -> None:
    engine = held()
    instance = Instance("event", "detect", 0)
    slot = next(Slot(f"node-{n}", 1) for n in (1, 2, 3) if engine.layout.placement[instance] != Slot(f"node-{n}", 1))
    outcome = engine.apply(Plan(Placement({instance: slot}), version=engine.version))
    assert outcome.ok and engine.layout.placement[instance] == slot
    engine.priorities.release([0])
    (passed,) = engine.priorities.triggers.passed
    assert passed.overhead_s > passed.drain_s + 0.2, "the move stops it for longer"
    assert engine.grain.unaccounted(engine.now_s) == 0


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_the_sources_of_a_topology_without_a_node_read_nothing_until_it_has_one(grain: str) -> None:
    engine = Simulator(parse_scenario(USE_CASE, "small"), grain=grain)
    engine.advance(15.0)
    assert engine.apply(Plan(rests=("archive",))).done == ("the sources of archive rest",)
    assert engine.apply(Plan(rests=("archive",))).done == ()
    engine.advance(5.0)
    before = engine.accounts.counts.executed[engine.layout.topology_of == 1].sum()
    engine.advance(30.0)
    assert engine.accounts.counts.executed[engine.layout.topology_of == 1].sum() == before
    assert engine.totals.starved_s == pytest.approx([0.0, 35.0])
    assert engine.grain.unaccounted(engine.now_s) == 0
    assert engine.apply(Plan()).done == (), "a plan that does not say leaves it as it is"
    assert engine.apply(Plan(rests=())).done == ("the sources of archive read again",)
    engine.advance(150.0)
    engine.close()
    assert engine.totals.times(1)[0].count == pytest.approx(ROWS)


WRONG = {
    "neither": ("events = [4, 8]", "level = 1", "either above_rows_s or events must be given"),
    "both": ("events = [4, 8]", "events = [4, 8], above_rows_s = 3", "either above_rows_s or events must be given"),
    "one end": ("events = [4, 8]", "events = [4]", "events must be [first, end], not [4]"),
    "backwards": ("events = [4, 8]", "events = [8, 4]", "the end of the events must be a whole number of at least 8"),
    "share": ("events = [4, 8]", "events = [4, 8], share = 1.5", "trigger: share must be at most 1, not 1.5"),
    "no batches": ("batches rows=60 every=10s count=16 within=1s", "constant 6", "events need a load in batches"),
    "level": ("events = [4, 8]", "events = [4, 8], calm = 0", "trigger: calm must be a whole number of at least 1"),
    "rate": ("events = [4, 8]", "above_rows_s = 0", "above_rows_s must be above 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_trigger_that_cannot_be_is_refused(case: str) -> None:
    old, new, sentence = WRONG[case]
    with pytest.raises(BadInput) as refused:
        parse_scenario(USE_CASE.replace(old, new, 1), "small")
    assert sentence in str(refused.value) and "topologies[0]" in str(refused.value)
