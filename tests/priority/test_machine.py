"""The drain protocol step by step, its timeouts, restarts in the middle of it, and the rules against flapping."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cycles import WORD_COUNT, seen

from barograph.model import BadInput
from barograph.model.codec import from_json, to_json
from barograph.priority import (
    PriorityLimits,
    PriorityState,
    RateTrigger,
    RawEventTrigger,
    TopologyPriority,
    with_levels,
)
from barograph.priority.machine import (
    USER,
    Instruction,
    InstructionKind,
    PriorityPhase,
    Transition,
    drained,
    known,
    recovered,
    rescheduled,
    resumed,
    set_level,
    tick,
    trigger,
)
from barograph.priority.store import load, save

LIMITS = PriorityLimits()
START = known(PriorityState(), {"a": 2, "b": 3})


def do(*orders: InstructionKind, name: str = "a") -> tuple[Instruction, ...]:
    return tuple(Instruction(o, name) for o in orders)


def test_a_trigger_goes_through_every_step_in_order_and_tells_its_overhead() -> None:
    on = trigger(START, "a", True, 10.0, LIMITS)
    assert on.instructions == do(InstructionKind.PAUSE) and on.state.of("a").level == 2
    assert on.told == ("a: trigger on by its user",)
    dry = drained(on.state, "a", 10.2)
    assert dry.instructions == do(InstructionKind.RESCHEDULE) and dry.state.of("a").level == 1
    placed = rescheduled(dry.state, "a", 10.5)
    assert placed.instructions == do(InstructionKind.RESUME)
    end = resumed(placed.state, "a", 10.75)
    assert end.instructions == () and end.state.of("a").phase is PriorityPhase.STEADY
    assert end.told == ("a: level 1, resumed 0.75 s after it was asked for",)
    off = trigger(end.state, "a", False, 11.0, LIMITS)
    assert off.instructions == do(InstructionKind.PAUSE) and off.state.of("a").goal == 2
    assert end.state.of("b") == START.of("b")


def through(step: Transition, name: str = "a", at_s: float = 0.0) -> PriorityState:
    """The rest of the protocol, at once."""
    state = rescheduled(drained(step.state, name, at_s).state, name, at_s).state
    return resumed(state, name, at_s).state


def test_set_is_the_level_without_a_trigger() -> None:
    state = through(set_level(START, "a", 4, 1.0))
    assert (state.of("a").level, state.of("a").calm) == (4, 4)
    on = through(trigger(state, "a", True, 2.0, LIMITS))
    quiet = set_level(on, "a", 3, 3.0)
    assert quiet.instructions == () and quiet.state.of("a").level == 1
    assert through(trigger(quiet.state, "a", False, 4.0, LIMITS)).of("a").level == 3


def test_a_topology_that_never_drains_is_resumed_with_its_old_level_and_that_is_reported() -> None:
    on = trigger(START, "a", True, 10.0, LIMITS)
    assert tick(on.state, 19.9, LIMITS).instructions == ()
    late = tick(on.state, 20.0, LIMITS)
    assert late.instructions == do(InstructionKind.RESUME)
    assert late.told == ("a: not drained within 10 s; resumed with its old level 2",)
    end = resumed(late.state, "a", 20.1).state
    assert (end.of("a").level, end.of("a").on) == (2, False)
    # and the same on the way back: it keeps level 1, and the trigger is still on
    high = through(trigger(START, "a", True, 0.0, LIMITS))
    off = tick(trigger(high, "a", False, 50.0, LIMITS).state, 60.0, LIMITS).state
    assert (off.of("a").level, off.of("a").on) == (1, True)
    # and of a level that was set
    unset = tick(set_level(START, "a", 5, 50.0).state, 60.0, LIMITS).state
    assert (unset.of("a").level, unset.of("a").calm, unset.of("a").on) == (2, 2, False)


def test_a_request_during_a_resume_that_cannot_be_met_either_is_dropped() -> None:
    late = tick(trigger(START, "a", True, 0.0, LIMITS).state, 10.0, LIMITS).state
    again = resumed(trigger(late, "a", True, 10.0, LIMITS).state, "a", 10.1)
    assert again.instructions == do(InstructionKind.PAUSE)
    end = tick(again.state, 20.1, LIMITS).state
    assert (end.of("a").level, end.of("a").wanted, end.of("a").on) == (2, 2, False)


def test_no_topology_stays_paused_because_the_scheduler_or_a_message_is_lost() -> None:
    dry = drained(trigger(START, "a", True, 0.0, LIMITS).state, "a", 1.0).state
    late = tick(dry, 11.0, LIMITS)
    assert late.instructions == do(InstructionKind.RESUME) and "resumed where it is" in late.told[0]
    again = tick(late.state, 13.0, LIMITS)
    assert again.instructions == do(InstructionKind.RESUME)


def test_a_request_during_a_change_is_carried_out_next() -> None:
    on = trigger(START, "a", True, 0.0, LIMITS).state
    off = trigger(on, "a", False, 1.0, LIMITS)
    assert off.instructions == ()
    end = resumed(rescheduled(drained(off.state, "a", 2.0).state, "a", 3.0).state, "a", 4.0)
    assert end.instructions == do(InstructionKind.PAUSE) and end.state.of("a").goal == 2
    # Not drained, and off was asked for since: there is nothing left to do.
    late = tick(off.state, 10.0, LIMITS).state
    assert resumed(late, "a", 11.0).instructions == ()


EVENTS = {
    "drained": drained,
    "rescheduled": rescheduled,
    "resumed": resumed,
}


@pytest.mark.parametrize("event", EVENTS)
def test_events_out_of_turn_change_nothing(event: str) -> None:
    assert EVENTS[event](START, "a", 1.0) == Transition(START)


PHASES = {
    PriorityPhase.DRAINING: InstructionKind.PAUSE,
    PriorityPhase.RESCHEDULING: InstructionKind.RESCHEDULE,
    PriorityPhase.RESUMING: InstructionKind.RESUME,
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_restart_goes_on_where_it_was(phase: PriorityPhase, tmp_path: Path) -> None:
    state = trigger(START, "a", True, 0.0, LIMITS).state
    state = state if phase is PriorityPhase.DRAINING else drained(state, "a", 1.0).state
    state = state if phase is not PriorityPhase.RESUMING else rescheduled(state, "a", 2.0).state
    save(tmp_path / "p.json", state)
    again = recovered(load(tmp_path / "p.json"), 1000.0)
    assert again.instructions == do(PHASES[phase])
    assert tick(again.state, 1001.0, LIMITS).told == (), "its timeout starts again"
    assert through(replace(again, state=again.state), at_s=1001.0).of("a").level == 1


def test_what_is_stored_is_whole_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    assert load(path) == PriorityState()
    save(path, START)
    assert load(path) == START
    assert [(p.name, p.stat().st_mode & 0o777) for p in tmp_path.iterdir()] == [("p.json", 0o600)]
    path.write_text("{")
    with pytest.raises(BadInput, match="are not valid"):
        load(path)
    path.write_text(json.dumps({"standings": {"a": {"calm": 0}}}))
    with pytest.raises(BadInput, match="priority: calm must be a whole number of at least 1"):
        load(path)


def test_a_trigger_that_turned_on_stays_on_for_a_while() -> None:
    on = through(trigger(START, "a", True, 100.0, LIMITS, by="its rate"), at_s=101.0)
    assert trigger(on, "a", False, 129.0, LIMITS, by="its rate") == Transition(on)
    assert trigger(on, "a", False, 131.0, LIMITS, by="its rate").instructions == do(InstructionKind.PAUSE)
    assert trigger(on, "a", False, 102.0, LIMITS).instructions == do(InstructionKind.PAUSE), "its user may at once"


def test_no_topology_starves_for_ever() -> None:
    state = through(trigger(START, "a", True, 0.0, LIMITS))
    for at_s in (10.0, 200.0, 309.0):
        step = tick(state, at_s, LIMITS, starved=["b"])
        assert step.instructions == ()
        state = step.state
    step = tick(state, 310.0, LIMITS, starved=["b"])
    assert step.instructions == do(InstructionKind.PAUSE)
    assert step.told == ("a: trigger off by starvation of b",)
    fed = through(step, at_s=311.0)
    assert fed.of("a").level == 2
    assert trigger(fed, "a", True, 320.0, LIMITS, by="its rate") == Transition(fed), "it rests"
    assert trigger(fed, "a", True, 371.0, LIMITS, by="its rate").instructions
    assert tick(state, 310.0, LIMITS, starved=[]).state.of("b").starved_s is None


def test_nonsense_is_refused() -> None:
    with pytest.raises(BadInput, match="there is no topology 'x'; there are a, b"):
        trigger(START, "x", True, 0.0, LIMITS)
    with pytest.raises(BadInput, match="the level must be a whole number of at least 1"):
        set_level(START, "a", 0, 0.0)
    with pytest.raises(BadInput, match="drain_s must be above 0"):
        PriorityLimits(drain_s=0.0)


def test_levels_that_hold_are_what_the_policy_sees() -> None:
    now = seen(WORD_COUNT, {})
    assert with_levels(now, PriorityState({"wc": TopologyPriority(2, 1)})).topology("wc").level == 1
    assert with_levels(now, PriorityState()) is now


def test_topologies_come_and_go() -> None:
    high = through(trigger(START, "a", True, 0.0, LIMITS))
    assert known(high, {"a": 2, "c": 1}).of("a").level == 1
    assert set(known(high, {"a": 2, "c": 1}).standings) == {"a", "c"}


RATES = {  # samples every second -> on before, wished
    "above for three seconds": ([90, 120, 120, 120], False, True),
    "not long enough": ([90, 90, 120, 120], False, False),
    "watched too shortly": ([120, 120], False, False),
    "a dip between": ([120, 90, 120, 120], False, False),
    "stays on a little below": ([85] * 12, True, True),
    "off when well below for long": ([70] * 12, True, False),
    "stays on when below for a moment": ([120] * 6 + [70] * 6, True, True),
}


@pytest.mark.parametrize("case", RATES)
def test_the_rate_trigger(case: str) -> None:
    rates, on, wished = RATES[case]
    samples = [(float(i), float(r)) for i, r in enumerate(rates)]
    assert RateTrigger(100.0).wish(samples, on) is wished
    assert RateTrigger(100.0).wish([], on) is on


def test_the_raw_event_trigger() -> None:
    rule = RawEventTrigger(above=10.0)
    assert rule.wish([11.0] * 8 + [1.0] * 2, False)
    assert not rule.wish([11.0] * 7 + [1.0] * 3, False)
    assert rule.wish([11.0] * 5 + [1.0] * 5, True)
    assert not rule.wish([11.0] * 4 + [1.0] * 6, True)
    assert rule.wish([], True)
    with pytest.raises(BadInput, match="off_share must be at most share"):
        RawEventTrigger(1.0, share=0.4)


_event = st.sampled_from(
    ["on", "off", "auto on", "auto off", "set", "drained", "rescheduled", "resumed", "tick", "restart"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_event, st.sampled_from("ab"), st.floats(0, 12)), max_size=30))
def test_whatever_happens_sources_flow_again_and_levels_are_what_was_asked_for(
    events: list[tuple[str, str, float]],
) -> None:
    state, at_s, paused = START, 0.0, {"a": False, "b": False}

    def take(step: Transition) -> None:
        nonlocal state
        state = step.state
        for instruction in step.instructions:
            if instruction.kind is not InstructionKind.RESCHEDULE:
                paused[instruction.topology] = instruction.kind is InstructionKind.PAUSE
        assert from_json(PriorityState, json.loads(json.dumps(to_json(state)))) == state

    for what, name, step_s in events:
        at_s += step_s
        if what in ("on", "off", "auto on", "auto off"):
            by = "its rate" if what.startswith("auto") else USER
            take(trigger(state, name, what.endswith("on"), at_s, LIMITS, by=by))
        elif what == "set":
            take(set_level(state, name, 4, at_s))
        elif what == "tick":
            take(tick(state, at_s, LIMITS))
        elif what == "restart":
            take(recovered(state, at_s))
        elif what != "resumed" or not paused[name]:
            take(EVENTS[what](state, name, at_s))
        for each, standing in state.standings.items():
            assert paused[each] == (standing.phase in (PriorityPhase.DRAINING, PriorityPhase.RESCHEDULING))
    for _ in range(8):  # from now on every instruction is carried out
        at_s += 0.1
        for name in "ab":
            for event in EVENTS.values():
                take(event(state, name, at_s))
    for standing in state.standings.values():
        assert standing.phase is PriorityPhase.STEADY
        assert standing.level == (1 if standing.on else standing.calm)
    assert not any(paused.values())
