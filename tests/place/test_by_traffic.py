"""The schedule that online computes: worked numbers (Aniello et al., 3.2)."""

from dataclasses import replace

import numpy as np
import pytest

from barograph.model import Demand, Instance, Node, Operator, OperatorDemand, Placement, Slot, Snapshot, Topology
from barograph.place.by_traffic import ByTraffic
from barograph.place.support.cost import traffic_between
from tests.cycles import workers_on
from tests.place.worked import ALL, farm, groups, sets, six, world


def test_six_instances_on_three_workers_a_worker_per_node() -> None:
    now, demand = six(farm(3), 3)
    decision = ByTraffic(alpha=0).schedule(now, demand, ALL)
    assert groups(decision.placement) == sets("a0 b0", "s0 s1", "a1 b1")
    assert traffic_between(now, demand, decision.placement)[0] == pytest.approx(230)


def test_three_workers_on_two_nodes_of_two_slots() -> None:
    now, demand = six(farm(2, slots=2), 3)
    placement = ByTraffic().schedule(now, demand, ALL).placement
    assert {i.operator + str(i.index): s.node for i, s in placement.slots.items()} == {
        "a0": "n1", "b0": "n1", "s0": "n1", "s1": "n1", "a1": "n2", "b1": "n2",
    }  # fmt: skip
    assert traffic_between(now, demand, placement)[0] == pytest.approx(120)


def test_without_a_bound_per_node_all_workers_share_one_node() -> None:
    now, demand = six(farm(2, slots=5), 3)
    placement = ByTraffic(spread=False).schedule(now, demand, ALL).placement
    assert {s.node for s in placement.slots.values()} == {"n1"}
    assert traffic_between(now, demand, placement)[0] == 0


def test_two_workers_within_the_capacity_of_their_nodes() -> None:
    now, demand = six(farm(2, cpu_pct=300), 2)
    placement = ByTraffic().schedule(now, demand, ALL).placement
    assert groups(placement) == sets("s0 a0 b0", "s1 a1 b1")
    assert traffic_between(now, demand, placement)[0] == pytest.approx(80)


def test_alpha_one_concentrates_and_empty_workers_get_the_cheapest_instances() -> None:
    rates = {("p", "q"): [[50.0]], ("q", "r"): [[40.0]], ("s", "t"): [[30.0]], ("t", "u"): [[20.0]]}
    now, demand = world(dict.fromkeys("pqrstu", 1), rates, farm(4), 4)
    placement = ByTraffic(alpha=1).schedule(now, demand, ALL).placement
    assert groups(placement) == sets("p0 q0 r0", "s0", "t0", "u0")
    assert traffic_between(now, demand, placement)[0] == pytest.approx(50)


def test_a_smaller_bound_keeps_load_off_a_node() -> None:
    """As above, but of a node's 300 % only 200 % may be used: two instances of 100 %, and not three."""
    rates = {("p", "q"): [[50.0]], ("q", "r"): [[40.0]], ("s", "t"): [[30.0]], ("t", "u"): [[20.0]]}
    now, demand = world(dict.fromkeys("pqrstu", 1), rates, farm(4, cpu_pct=300), 4)
    assert max(len(held) for held in ByTraffic(alpha=1).schedule(now, demand, ALL).placement.by_slot().values()) == 3
    placement = ByTraffic(alpha=1, bound_pct=200 / 3).schedule(now, demand, ALL).placement
    assert max(len(held) for held in placement.by_slot().values()) == 2


def test_workers_and_nodes_are_matched_to_the_present() -> None:
    """The same groups on other nodes and slots: nothing moves."""
    now, demand = six(farm(3, slots=2), 3)
    at = {"a0": "n3/1", "b0": "n3/1", "s0": "n2/1", "s1": "n2/1", "a1": "n1/0", "b1": "n1/0"}
    present = Placement({Instance("t", i[0], int(i[1])): Slot.parse(s) for i, s in at.items()})
    now, demand = world({"s": 2, "a": 2, "b": 2}, SIX_RATES, now.nodes, 3, placement=present)
    assert ByTraffic().schedule(now, demand, ALL).placement == present


SIX_RATES = {("s", "a"): [[80.0, 20.0], [30.0, 70.0]], ("a", "b"): [[90.0, 20.0], [10.0, 80.0]]}


def test_load_counts_in_hertz() -> None:
    """The second node is twice as fast, so it holds twice the share."""
    nodes = (Node("n1", 100, clock_mhz=1000), Node("n2", 100, clock_mhz=2000))
    now, demand = world({"s": 1, "a": 2}, {("s", "a"): [[5.0, 5.0]]}, nodes, 2, cpu_pct=60)
    placement = ByTraffic(alpha=1).schedule(now, demand, ALL).placement
    assert sorted(len(held) for held in placement.by_slot().values()) == [1, 2]
    assert len({s.node for s in placement.slots.values()}) == 2
    assert np.isclose(sum(i.topology == "t" for i in placement), 3)


def test_a_group_that_fits_no_worker_of_its_node_gets_a_worker_with_room_for_all_of_it() -> None:
    """At once, and not after its instances were in different workers for a cycle."""
    nodes = (Node("n0", 50, slots=2, seats=2), Node("n1", 50, seats=1), Node("n2", 50, seats=1))
    pair = Topology("pair", (Operator("o", 2, source=True),), (), workers=1, level=2)
    first = Topology("first", (Operator("o", 1, source=True, cpu_pct=1),), (), level=1)
    now = Snapshot(0, 1, nodes, (pair, first), workers_on(nodes), shared_workers=True)
    demand = Demand((OperatorDemand("pair", "o", 2, (0.0, 0.0)), OperatorDemand("first", "o", 1, (1.0,))))
    placement = ByTraffic().schedule(now, demand, ALL).placement
    assert len(set(placement.of_topology("pair").slots.values())) == 1
    assert ByTraffic().schedule(replace(now, placement=placement), demand, ALL).placement == placement
