"""R-Storm (Peng et al.) and T-Storm (Xu et al.) on worked numbers."""

from dataclasses import replace

import pytest

from barograph.model import (
    Demand,
    Edge,
    Instance,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    Plan,
    Slot,
    Snapshot,
    Topology,
)
from barograph.place.r_storm import RStorm
from barograph.place.support.cost import traffic_between
from barograph.place.t_storm import TStorm
from tests.cycles import remembered, workers_on
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
    decision = RStorm()((), declared(TWO), Demand(()), ALL)
    on = [
        decision.placement[i].node
        for i in [Instance("t", o, k) for k in range(3) for o in "sa"]
        if i in decision.placement
    ]
    assert on == ["n1", "n1", "n1", "n1", "n2"]


def test_r_storm_places_a_topology_completely_or_not_at_all() -> None:
    decision = RStorm()((), declared((Node("n1", 400, memory_mb=9000),)), Demand(()), ALL)
    assert len(decision.placement) == 0
    assert len(decision.unplaced) == 5
    assert "t is placed completely or not at all" in decision.unplaced[0].reason


def test_r_storm_takes_more_workers_if_the_heap_limit_requires_it() -> None:
    decision = RStorm()((), declared((Node("n1", 900, slots=4, memory_mb=9000),), heap_mb=2000), Demand(()), ALL)
    assert sorted(len(held) for held in decision.placement.by_slot().values()) == [1, 2, 2]


def test_r_storm_places_only_lost_instances_again() -> None:
    whole = RStorm()((), declared(TWO), Demand(()), ALL).placement
    lost = Placement({i: s for i, s in whole.slots.items() if s.node == "n2"})
    again = RStorm()((), declared((TWO[1], Node("n3", 400, slots=4, memory_mb=4000)), lost), Demand(()), ALL)
    assert not again.unplaced
    assert all(again.placement[i] == s for i, s in lost.slots.items())


APART = RStorm(one_per_worker=True, anew_on_rescale=True)


def linear(
    sinks: int, nodes: int, slots: int = 4, placement: Placement | None = None, running: int | None = None
) -> tuple[Snapshot, Demand]:
    """Kombi et al.'s linear topology on dual-core machines with ``sinks`` sinks; running: how many it has now."""
    operators = (
        Operator("source", 1, source=True, cpu_pct=20, memory_mb=256),
        Operator("intermediate", 1, cpu_pct=20, memory_mb=256),
        Operator("sink", sinks if running is None else running, cpu_pct=80, memory_mb=512),
    )
    topology = Topology("t", operators, (Edge("source", "intermediate"), Edge("intermediate", "sink")))
    machines = tuple(Node(f"n{k + 1}", 200, slots=slots, seats=8, memory_mb=4096) for k in range(nodes))
    now = Snapshot(0, 1, machines, (topology,), workers_on(machines), placement=placement or Placement())
    shares = {"source": (20.0,), "intermediate": (20.0,), "sink": (80.0,) * sinks}
    return now, Demand(tuple(OperatorDemand("t", name, len(pct), pct) for name, pct in shares.items()))


def most_in_a_worker(placement: Placement, operator: str) -> int:
    return max(sum(1 for i in held if i.operator == operator) for held in placement.by_slot().values())


@pytest.mark.parametrize("sinks", [2, 3, 8])
def test_one_instance_of_an_operator_per_worker(sinks: int) -> None:
    now, demand = linear(sinks, nodes=6)
    plain, apart = (placer((), now, demand, ALL) for placer in (RStorm(), APART))
    assert most_in_a_worker(plain.placement, "sink") == 2  # as many as the node has CPU for run in one worker
    assert most_in_a_worker(apart.placement, "sink") == 1
    assert not apart.unplaced
    nodes = [len({s.node for s in d.placement.slots.values()}) for d in (plain, apart)]
    assert nodes[0] == nodes[1]  # nodes have enough workers, so no further node is needed


def test_instances_share_a_worker_if_there_are_too_few_workers() -> None:
    now, demand = linear(sinks=4, nodes=2, slots=1)
    found = APART((), now, demand, ALL)
    assert not found.unplaced
    assert most_in_a_worker(found.placement, "sink") == 2


def test_a_rescaled_topology_is_placed_from_scratch_and_so_uses_fewer_nodes() -> None:
    eight = APART((), *linear(8, nodes=6), ALL).placement
    last_first = {Instance("t", "sink", k): eight[Instance("t", "sink", 7 - k)] for k in range(8)}
    eight = Placement({**eight.slots, **last_first})
    now, demand = linear(2, nodes=6, placement=eight, running=8)
    anew, kept = (placer((), now, demand, ALL).placement for placer in (APART, RStorm(one_per_worker=True)))
    assert [len({s.node for s in p.slots.values()}) for p in (anew, kept)] == [1, 2]
    assert all(kept[i] == eight[i] for i in kept)
    settled, _ = linear(2, nodes=6, placement=anew)
    assert APART((), settled, demand, ALL).placement == anew


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


def test_t_storm_places_instances_without_a_place_at_once() -> None:
    now, demand = six(farm(2, slots=2), 2)
    first = TStorm()((), now, demand, ALL)
    history = [remembered(now, plan=Plan(reasons=first.reasons))]
    lost = Placement({i: s for i, s in first.placement.slots.items() if s.node == "n1"})
    again = TStorm()(history, replace(now, at_s=10, placement=lost), demand, ALL)
    assert len(again.placement) == 6
