"""Steady: what holds is left alone, what does not is mended with room to grow."""

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
from barograph.place.steady import Fit, Steady, fit
from barograph.place.thrifty import Thrifty
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


def test_a_placement_that_holds_is_left_alone() -> None:
    now = world("n1", "n1", "n2", "n2")
    # it could be packed onto one node, and reserved 40 would not fit there: so it stays
    assert Steady()((), now, demand(20, 40), ALL).placement == now.placement
    # it holds, though what is reserved would not: no move is made for what may never come
    assert Steady()((), now, demand(20, 60), ALL).placement == now.placement


def test_without_a_reserve_the_placer_inside_decides() -> None:
    now = world("n1", "n1", "n2", "n2")
    assert Steady()((), now, demand(20), ALL) == Thrifty()((), now, demand(20), ALL)


def test_what_must_move_moves_once_with_room_to_grow() -> None:
    now = world("n1", "n1", "n1", "n1")
    found = Steady()((), now, demand(30, 45), ALL)
    assert loads(now, found, 45.0) == [0, 90, 90]
    without = Thrifty()((), now, demand(30), ALL)
    assert loads(now, without, 30.0) == [0, 30, 90]


def test_where_what_is_reserved_does_not_fit_the_demand_decides() -> None:
    now = world("n1", "n1", "n1", "n1")
    found = Steady()((), now, demand(30, 90), ALL)
    assert not found.unplaced
    assert max(loads(now, found, 30.0)) <= 100


def test_a_valley_that_lasts_is_used_to_empty_a_node() -> None:
    now = world("n1", "n1", "n2", "n2")
    past = [Cycle(now, Forecast(()), Demand(()), Allotment(), Plan())]
    later = replace(now, at_s=60.0)
    assert loads(later, Steady()(past, later, demand(10, 15), ALL), 10.0) == [0, 0, 40]
    assert Steady()((), now, demand(10, 15), ALL).placement == now.placement, "nobody knows yet what it needs"


def test_what_holds() -> None:
    now = world("n1", "n1", "n2", "n2")
    assert fit(now, demand(50), ALL) is Fit.HOLDS
    assert fit(now, demand(51), ALL) is Fit.CROWDED
    assert fit(world("n1", "n1", "n2"), demand(10), ALL) is Fit.MISPLACED
    assert fit(replace(now, workers=now.workers[1:]), demand(10), ALL) is Fit.MISPLACED
    assert fit(now, demand(10), Allotment({"t": ("n1",)})) is Fit.MISPLACED
    assert fit(now, demand(10), Allotment({"other": ("n1",)})) is Fit.MISPLACED
    assert fit(now, demand(10), Allotment({"t": ("n1", "n2")})) is Fit.HOLDS


def test_what_a_change_left_behind_is_no_reason_for_the_next() -> None:
    """A node is asked for more than it has 10 s after a change: it is left alone; 40 s after it, it is not."""
    before, now = world("n1", "n1", "n1", "n2"), world("n1", "n1", "n2", "n2")
    for seconds, moved in ((10.0, False), (40.0, True)):
        history = [Cycle(s, Forecast(()), Demand(()), Allotment(), Plan()) for s in (before, now)]
        later = replace(now, at_s=seconds)
        found = Steady()(history, later, demand(55, 60), ALL)
        assert (found.placement != now.placement) is moved
    without_a_seat = replace(now, at_s=10.0, workers=now.workers[1:])
    assert Steady()(history, without_a_seat, demand(30, 40), ALL).placement != now.placement
