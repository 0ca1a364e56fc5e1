"""Steady: a placement that fits is kept, one that does not is repaired with room for growth."""

from dataclasses import replace

from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Forecast,
    Operator,
    OperatorDemand,
    Placement,
    Plan,
    Slot,
    Snapshot,
    Topology,
)
from barograph.place import PlaceDecision
from barograph.place.adaptive.thrifty import Thrifty
from barograph.place.adaptive.worth import Stretch, Worth
from barograph.place.steady import Fit, Steady, fit
from tests.cycles import nodes, workers_on
from tests.place.worked import ALL

FOUR = Topology("t", (Operator("s", 4, source=True),))


def world(*where: str) -> Snapshot:
    cluster = nodes(3, 100)
    placed = {i: Slot(node) for i, node in zip(FOUR.instances(), where, strict=False)}
    return Snapshot(0.0, 10.0, cluster, (FOUR,), workers_on(cluster, 8), Placement(placed))


def demand(share: float, reserved: float | None = None) -> Demand:
    room = () if reserved is None else (reserved,) * 4
    return Demand((OperatorDemand("t", "s", 4, (share,) * 4, reserved_pct=room),))


def loads(now: Snapshot, found: PlaceDecision, share: float) -> list[float]:
    assert not found.unplaced
    placement = {**now.placement.slots, **found.placement.slots}
    return sorted(sum(share for s in placement.values() if s.node == n.name) for n in now.nodes)


def test_a_placement_that_fits_is_kept() -> None:
    now = world("n1", "n1", "n2", "n2")
    # it could be packed onto one node, and reserved 40 would not fit there: so it stays
    assert Steady()((), now, demand(20, 40), ALL).placement == now.placement
    # it fits, though the reserved shares would not: no move is made for growth that may not happen
    assert Steady()((), now, demand(20, 60), ALL).placement == now.placement


def test_without_a_reserve_the_inner_placer_decides() -> None:
    now = world("n1", "n1", "n2", "n2")
    assert Steady()((), now, demand(20), ALL) == Thrifty()((), now, demand(20), ALL)


def test_forced_moves_are_made_once_with_room_for_growth() -> None:
    now = world("n1", "n1", "n1", "n1")
    found = Steady()((), now, demand(30, 45), ALL)
    assert loads(now, found, 45.0) == [0, 90, 90]
    without = Thrifty()((), now, demand(30), ALL)
    assert loads(now, without, 30.0) == [0, 30, 90]


def test_if_reserved_shares_do_not_fit_the_present_ones_are_used() -> None:
    now = world("n1", "n1", "n1", "n1")
    found = Steady()((), now, demand(30, 90), ALL)
    assert not found.unplaced
    assert max(loads(now, found, 30.0)) <= 100


def test_a_node_is_emptied_if_the_load_stays_low() -> None:
    now = world("n1", "n1", "n2", "n2")
    past = [Cycle(now, Forecast(()), Demand(()), Allotment(), Plan())]
    later = replace(now, at_s=60.0)
    assert loads(later, Steady()(past, later, demand(10, 15), ALL), 10.0) == [0, 0, 40]
    assert Steady()((), now, demand(10, 15), ALL).placement == now.placement, "its load is not known yet"


def test_when_a_placement_fits() -> None:
    now = world("n1", "n1", "n2", "n2")
    assert fit(now, demand(50), ALL) is Fit.HOLDS
    assert fit(now, demand(51), ALL) is Fit.CROWDED
    assert fit(world("n1", "n1", "n2"), demand(10), ALL) is Fit.MISPLACED
    assert fit(replace(now, workers=now.workers[1:]), demand(10), ALL) is Fit.MISPLACED
    assert fit(now, demand(10), Allotment({"t": ("n1",)})) is Fit.MISPLACED
    assert fit(now, demand(10), Allotment({"other": ("n1",)})) is Fit.MISPLACED
    assert fit(now, demand(10), Allotment({"t": ("n1", "n2")})) is Fit.HOLDS


def test_the_backlog_of_a_change_is_no_reason_for_the_next_change() -> None:
    """A node is overcommitted 10 s after a change: nothing moves; 40 s after it, instances move."""
    before, now = world("n1", "n1", "n1", "n2"), world("n1", "n1", "n2", "n2")
    for seconds, moved in ((10.0, False), (40.0, True)):
        history = [Cycle(s, Forecast(()), Demand(()), Allotment(), Plan()) for s in (before, now)]
        later = replace(now, at_s=seconds)
        found = Steady()(history, later, demand(55, 60), ALL)
        assert (found.placement != now.placement) is moved
    without_a_seat = replace(now, at_s=10.0, workers=now.workers[1:])
    assert Steady()(history, without_a_seat, demand(30, 40), ALL).placement != now.placement


def with_target(now: Snapshot, target_ms: float | None) -> Snapshot:
    return replace(now, topologies=(replace(FOUR, target_p99_ms=target_ms),))


def test_a_crowded_node_is_left_as_it_is_where_a_pause_would_miss_the_target() -> None:
    """The headroom does not fit: 4 x 30 %. What is needed fits: 4 x 22 %."""
    now = world("n1", "n1", "n1", "n1")
    crowded = Demand((OperatorDemand("t", "s", 4, (30.0,) * 4, (22.0,) * 4, reserved_pct=(30.0,) * 4),))
    assert Steady()((), with_target(now, 50.0), crowded, ALL).placement == now.placement
    for target_ms in (None, 1000.0):
        assert Steady()((), with_target(now, target_ms), crowded, ALL).placement != now.placement
    overloaded = Demand((OperatorDemand("t", "s", 4, (30.0,) * 4, (28.0,) * 4, reserved_pct=(30.0,) * 4),))
    assert Steady()((), with_target(now, 50.0), overloaded, ALL).placement != now.placement


def test_nodes_are_freed_rarely_where_a_pause_would_miss_the_target() -> None:
    worth = Worth(pause_s=0.7, delayed_part=0.007, hop_s=0.001, known_s=30.0)
    assert worth.may_choose(Stretch(100.0, first=False)) and worth.may_choose(Stretch(30.0, first=True))
    assert not worth.may_choose(Stretch(999.0, first=True), rarely=True)
    assert worth.may_choose(Stretch(1000.0, first=False), rarely=True)
