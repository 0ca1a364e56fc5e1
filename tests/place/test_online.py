"""Online: when a schedule is computed and when it is applied. P, R, B and X as in Aniello et al., 3.2.1."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.model import (
    BadInput,
    Cycle,
    Demand,
    Instance,
    InstanceMetrics,
    Metrics,
    Placement,
    Plan,
    ReasonCode,
    Slot,
    Snapshot,
)
from barograph.place import PlaceDecision
from barograph.place.even import even
from barograph.place.online import Online, overloaded_nodes
from barograph.place.support.period import COMPUTED_AT
from tests.cycles import remembered
from tests.place.worked import ALL, SIX, farm, groups, sets, six, world

WORKED = sets("a0 b0", "s0 s1", "a1 b1")  # what is computed from the six instances on three workers: 230 rows/s


def placed(**at: str) -> Placement:
    return Placement({Instance("t", name[0], int(name[1])): Slot.parse(slot) for name, slot in at.items()})


EVEN = placed(s0="n1/0", b0="n1/0", s1="n2/0", b1="n2/0", a0="n3/0", a1="n3/0")  # 400 rows/s
CLOSE = placed(s0="n1/0", b1="n1/0", s1="n2/0", a1="n2/0", a0="n3/0", b0="n3/0")  # 240 rows/s: 230 is 4.2 % less


def running(placement: Placement, at_s: float = 0.0, cycle_s: float = 10.0) -> tuple[Snapshot, Demand]:
    now, demand = world({"s": 2, "a": 2, "b": 2}, SIX, farm(3), 3, placement=placement)
    traffic = tuple(replace(edge, rows=edge.rows * cycle_s) for edge in now.traffic)
    return replace(now, at_s=at_s, cycle_s=cycle_s, traffic=traffic), demand


def using(now: Snapshot, **cores: float) -> Snapshot:
    """The snapshot with CPU used by instances, in cores."""
    rows = {
        Instance("t", name[0], int(name[1])): InstanceMetrics(cpu_s=used * now.cycle_s) for name, used in cores.items()
    }
    return replace(now, metrics=Metrics.of(rows))


def run(placer: Online, snapshots: Sequence[Snapshot], demand: Demand) -> list[PlaceDecision]:
    """Cycle after cycle, each with the earlier decisions in its history. No decision is applied."""
    history: list[Cycle] = []
    found = []
    for now in snapshots:
        found.append(placer(history, now, demand, ALL))
        history.append(remembered(now, demand, plan=Plan(reasons=found[-1].reasons)))
    return found


def gain_pct(decision: PlaceDecision) -> float:
    return next(r.numbers["gain_pct"] for r in decision.reasons if "gain_pct" in r.numbers)


def computed(decisions: Sequence[PlaceDecision]) -> list[bool]:
    return [any("gain_pct" in r.numbers for r in d.reasons) for d in decisions]


def test_nothing_measured_yet_starts_as_the_default_scheduler() -> None:
    now, _ = six(farm(3), 3)
    now = replace(now, traffic=())
    decision = Online()((), now, Demand(()), ALL)
    assert decision.placement == even((), now, Demand(()), ALL).placement
    assert decision.reasons[-1].code is ReasonCode.SCHEDULE_UNMEASURED
    assert decision.reasons[-1].numbers[COMPUTED_AT] == now.at_s


def test_a_measured_topology_without_a_place_gets_the_schedule_at_once() -> None:
    now, demand = six(farm(3), 3)
    assert groups(Online()((), now, demand, ALL).placement) == WORKED


def test_a_topology_submitted_later_is_placed_evenly_and_moves_no_other() -> None:
    now, demand = running(CLOSE, at_s=60)
    new = replace(now.topologies[0], name="new")
    before = remembered(now, plan=Plan(reasons=Online()((), now, demand, ALL).reasons))
    now = replace(now, topologies=(*now.topologies, new), nodes=farm(3, slots=2))
    decision = Online()([before], now, demand, ALL)
    assert decision.placement.of_topology("t") == CLOSE
    assert len(decision.placement.of_topology("new")) == 6


def test_a_gain_above_r_is_applied() -> None:
    now, demand = running(EVEN)
    decision = Online()((), now, demand, ALL)
    assert groups(decision.placement) == WORKED
    assert gain_pct(decision) == pytest.approx(100 * (400 - 230) / 400)
    assert decision.reasons[-1].code is ReasonCode.SCHEDULE_GAINS
    assert "42.5 %" in decision.reasons[-1].why


@pytest.mark.parametrize(
    ("least_gain_pct", "taken"), [(10.0, False), (5.0, False), (4.0, True), (0.0, True)], ids=["10", "5", "4", "0"]
)
def test_a_gain_below_r_moves_nothing(least_gain_pct: float, taken: bool) -> None:
    now, demand = running(CLOSE)
    decision = Online(least_gain_pct=least_gain_pct)((), now, demand, ALL)
    assert gain_pct(decision) == pytest.approx(100 * 10 / 240)
    assert (decision.placement != CLOSE) == taken
    assert (decision.reasons[-1].code is ReasonCode.SCHEDULE_GAINS_LITTLE) == (not taken)


def test_a_gain_of_exactly_r_is_not_more_than_r() -> None:
    now, demand = running(CLOSE)
    assert Online(least_gain_pct=100 * 10 / 240)((), now, demand, ALL).placement == CLOSE


@pytest.mark.parametrize(
    ("cycle_s", "expected_s"),
    [(1, [30, 60, 90, 120]), (10, [30, 60, 90, 120]), (20, [40, 80, 120]), (40, [40, 80, 120])],
    ids=lambda v: str(v),
)
def test_a_schedule_is_computed_every_p_seconds_whatever_the_cycle(cycle_s: int, expected_s: list[int]) -> None:
    times = range(0, 121, cycle_s)
    worlds = [running(CLOSE, at_s, cycle_s) for at_s in times]
    decisions = run(Online(), [now for now, _ in worlds], worlds[0][1])
    assert [t for t, done in zip(times, computed(decisions), strict=True) if done] == [0, *expected_s]
    assert all(d.placement == CLOSE for d in decisions)


def test_p_begins_with_the_first_placement() -> None:
    """Online is submitted as default at 0, and reschedules 40 s later."""
    first, demand = running(Placement())
    first = replace(first, traffic=())
    later = [running(EVEN, at_s)[0] for at_s in (10, 20, 30, 40)]
    decisions = run(Online(reschedule_s=40), [first, *later], Demand(()))
    assert computed(decisions) == [False, False, False, False, True]
    assert [d.placement == EVEN for d in decisions[1:]] == [True, True, True, False]
    assert demand.operators


def test_a_cycle_made_long_by_a_change_does_not_break_it() -> None:
    """A change at 30 s runs to 75 s: then the next schedule is due, and the one after it P seconds later."""
    times = [0, 10, 20, 30, 75, 80, 90, 100, 110]
    lengths = [10, 10, 10, 10, 45, 5, 10, 10, 10]
    worlds = [running(CLOSE, at_s, cycle_s) for at_s, cycle_s in zip(times, lengths, strict=True)]
    decisions = run(Online(), [now for now, _ in worlds], worlds[0][1])
    assert [t for t, done in zip(times, computed(decisions), strict=True) if done] == [0, 30, 75, 110]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0.5, 90), min_size=2, max_size=40),
    st.floats(1, 100),
)
def test_two_schedules_are_never_less_than_p_apart_and_never_missed(lengths: list[float], period_s: float) -> None:
    at_s, snapshots = 0.0, []
    for length in lengths:
        at_s += length
        snapshots.append(running(CLOSE, at_s, length)[0])
    decisions = run(Online(reschedule_s=period_s), snapshots, running(CLOSE)[1])
    done = [s.at_s for s, yes in zip(snapshots, computed(decisions), strict=True) if yes]
    assert all(b - a >= period_s - 1e-5 for a, b in pairwise(done))
    for snapshot, yes in zip(snapshots, computed(decisions), strict=True):
        last_s = max((t for t in done if t < snapshot.at_s), default=None)
        assert yes == (last_s is None or snapshot.at_s - last_s >= period_s - 1e-6)


BUSY = {"s0": 40.0, "b1": 40.0, "s1": 10.0, "a1": 10.0, "a0": 10.0, "b0": 10.0}  # 80 of the 100 cores of n1


def overloaded(cycles: Sequence[tuple[float, float]], cores: dict[str, float]) -> list[Snapshot]:
    """(at_s, cycle_s) of each cycle."""
    return [using(running(CLOSE, at_s, cycle_s)[0], **cores) for at_s, cycle_s in cycles]


def test_a_node_at_its_bound_for_x_seconds_moves_though_the_gain_is_small() -> None:
    """The first schedule at 0 is compared by its gain; at 20 s n1 has been at B for 20 s, 10 s before P is over."""
    snapshots = overloaded([(0, 1), (10, 10), (20, 10), (30, 10)], BUSY)
    decisions = run(Online(bound_pct=80), snapshots, running(CLOSE)[1])
    assert [d.placement == CLOSE for d in decisions] == [True, True, False, False]
    why = decisions[2].reasons[-1]
    assert why.code is ReasonCode.SCHEDULE_RELIEVES
    assert why.why == "applied: n1 at or above 80 % for 20 s"
    assert why.numbers["gain_pct"] == pytest.approx(100 * 10 / 240)


@pytest.mark.parametrize(
    ("bound_pct", "overload_s", "lengths", "expected"),
    [
        (80, 20, [10, 10], ("n1",)),
        (80, 20, [1] * 20, ("n1",)),
        (80, 20, [25], ("n1",)),
        (80, 20, [10], ()),
        (80, 30, [10, 10], ()),
        (81, 20, [10, 10], ()),
    ],
    ids=["two cycles", "short cycles", "one long cycle", "too short", "x is longer", "below b"],
)
def test_x_is_a_length_of_time(
    bound_pct: float, overload_s: float, lengths: list[float], expected: tuple[str, ...]
) -> None:
    cycles = [(sum(lengths[: k + 1]), length) for k, length in enumerate(lengths)]
    *before, now = overloaded(cycles, BUSY)
    assert overloaded_nodes([remembered(s) for s in before], now, bound_pct, overload_s) == expected


def test_an_overload_is_counted_anew_after_a_change_and_after_a_pause() -> None:
    *before, now = overloaded([(10, 10), (20, 10), (30, 10)], BUSY)
    idle = overloaded([(20, 10)], dict.fromkeys(BUSY, 1.0))[0]
    assert overloaded_nodes([remembered(before[0]), remembered(idle)], now, 80, 20) == ()
    moved = replace(before[1], placement=EVEN)
    assert overloaded_nodes([remembered(before[0]), remembered(moved)], now, 80, 20) == ()


def test_a_full_node_counts_as_at_its_bound_though_some_cpu_is_lost_to_context_switches() -> None:
    full = dict.fromkeys(("s0", "b1"), 45.0)
    *before, now = overloaded([(10, 10), (20, 10)], full)
    assert overloaded_nodes([remembered(s) for s in before], now, 100, 20) == ("n1",)


def test_a_schedule_with_unplaced_instances_is_not_applied() -> None:
    now, demand = world({"s": 2, "a": 2, "b": 2}, SIX, farm(3, cpu_pct=150), 3, placement=EVEN)
    decision = Online()((), now, demand, ALL)
    assert decision.placement == EVEN
    assert decision.reasons[-1].code is ReasonCode.SCHEDULE_INCOMPLETE
    assert not decision.unplaced


def test_its_own_schedule_is_kept() -> None:
    now, demand = running(EVEN)
    taken = Online()((), now, demand, ALL).placement
    later = [running(taken, at_s)[0] for at_s in range(10, 200, 10)]
    decisions = run(Online(least_gain_pct=0), later, demand)
    assert all(d.placement == taken for d in decisions)
    assert any(r.code is ReasonCode.SCHEDULE_SAME for d in decisions for r in d.reasons)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Online(reschedule_s=0), "reschedule_s"),
        (lambda: Online(least_gain_pct=-1), "least_gain_pct"),
        (lambda: Online(bound_pct=0), "bound_pct"),
        (lambda: Online(overload_s=0), "overload_s"),
    ],
    ids=["P", "R", "B", "X"],
)
def test_options_must_be_possible(make: Callable[[], Online], name: str) -> None:
    with pytest.raises(BadInput, match=name):
        make()
