"""R-Storm and T-Storm on the worked numbers of baselines.md."""

from dataclasses import replace

import pytest

from barograph.model import Demand, Edge, Instance, Node, Operator, Placement, Plan, Slot, Snapshot, Topology
from barograph.place.measure import traffic_between
from barograph.place.r_storm import r_storm
from barograph.place.t_storm import TStorm
from tests.cycles import remembered
from tests.place.worked import ALL, farm, six, world


def declared(nodes: tuple[Node, ...], placement: Placement | None = None, heap_mb: float | None = None) -> Snapshot:
    operators = (
        Operator("s", 2, source=True, cpu_pct=100, memory_mb=1000),
        Operator("a", 3, cpu_pct=100, memory_mb=1000),
    )
    topology = Topology("t", operators, (Edge("s", "a"),), max_heap_mb=heap_mb)
    return Snapshot(0, 1, nodes, (topology,), placement=placement or Placement(), shared_workers=False)


TWO = (Node("n1", 400, slots=4, memory_mb=4000), Node("n2", 300, slots=4, memory_mb=4000))


def test_r_storm_fills_the_nearest_node_first() -> None:
    decision = r_storm((), declared(TWO), Demand(()), ALL)
    on = [
        decision.placement[i].node
        for i in [Instance("t", o, k) for k in range(3) for o in "sa"]
        if i in decision.placement
    ]
    assert on == ["n1", "n1", "n1", "n1", "n2"]


def test_r_storm_places_all_or_nothing() -> None:
    decision = r_storm((), declared((Node("n1", 400, memory_mb=9000),)), Demand(()), ALL)
    assert len(decision.placement) == 0
    assert len(decision.unplaced) == 5
    assert "t is placed whole or not at all" in decision.unplaced[0].reason


def test_r_storm_takes_more_workers_where_the_heap_asks_for_it() -> None:
    decision = r_storm((), declared((Node("n1", 900, slots=4, memory_mb=9000),), heap_mb=2000), Demand(()), ALL)
    assert sorted(len(held) for held in decision.placement.by_slot().values()) == [1, 2, 2]


def test_r_storm_replaces_only_what_was_lost() -> None:
    whole = r_storm((), declared(TWO), Demand(()), ALL).placement
    lost = Placement({i: s for i, s in whole.slots.items() if s.node == "n2"})
    again = r_storm((), declared((TWO[1], Node("n3", 400, slots=4, memory_mb=4000)), lost), Demand(()), ALL)
    assert not again.unplaced
    assert all(again.placement[i] == s for i, s in lost.slots.items())


def test_t_storm_on_two_nodes() -> None:
    now, demand = six(farm(2), 2)
    placement = TStorm(gamma=1)((), now, demand, ALL).placement
    assert traffic_between(now, demand, placement)[0] == pytest.approx(80)
    assert all(slot == Slot(slot.node, 0) for slot in placement.slots.values())


def test_t_storm_with_a_large_gamma_uses_fewer_nodes() -> None:
    now, demand = world({"s": 1, "a": 1, "b": 1}, {("s", "a"): [[5.0]], ("a", "b"): [[5.0]]}, farm(2), 2)
    used = [len({s.node for s in TStorm(g)((), now, demand, ALL).placement.slots.values()}) for g in (1.0, 2.0)]
    assert used == [2, 1]


def test_t_storm_computes_a_schedule_when_traffic_is_first_known_and_then_every_300_s() -> None:
    now, demand = six(farm(2, slots=2), 2)
    unseen = replace(now, traffic=())
    history = [remembered(unseen, plan=Plan(reasons=TStorm()((), unseen, Demand(()), ALL).reasons))]
    start = Placement({i: Slot("n1" if i.operator == "s" else "n2") for i in now.topologies[0].instances()})
    computed = []
    for at_s in (10, 20, 300, 310, 320, 610):
        seen = replace(now, at_s=at_s, placement=start)
        decision = TStorm()(history, seen, demand, ALL)
        history.append(remembered(seen, plan=Plan(reasons=decision.reasons)))
        computed += [at_s] if decision.placement != start else []
    assert computed == [10, 310, 610]


def test_t_storm_places_at_once_what_has_no_place() -> None:
    now, demand = six(farm(2, slots=2), 2)
    first = TStorm()((), now, demand, ALL)
    history = [remembered(now, plan=Plan(reasons=first.reasons))]
    lost = Placement({i: s for i, s in first.placement.slots.items() if s.node == "n1"})
    again = TStorm()(history, replace(now, at_s=10, placement=lost), demand, ALL)
    assert len(again.placement) == 6
