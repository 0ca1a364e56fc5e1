"""The allocator of SPS and DPS, and isolation: worked numbers and what must not move."""

from dataclasses import replace

from barograph.allot import Isolation
from barograph.model import Allotment, Demand, Node, Operator, Placement, Snapshot, Topology
from barograph.place.isolated import isolated
from barograph.place.whole_nodes import whole_nodes

DEMAND = Demand(())


def cluster(nodes: int, slots: int, *topologies: Topology, placement: Placement | None = None) -> Snapshot:
    machines = tuple(Node(f"n{k}", 200, slots=slots) for k in range(1, nodes + 1))
    return Snapshot(0, 10, machines, topologies, placement=placement or Placement(), shared_workers=False)


def topology(name: str, instances: int, workers: int, isolate: int = 0) -> Topology:
    return Topology(name, (Operator("a", instances),), workers=workers, isolate_nodes=isolate)


def workers_on(placement: Placement) -> dict[str, int]:
    slots = set(placement.slots.values())
    return {n: sum(s.node == n for s in slots) for n in sorted({s.node for s in slots})}


def test_only_the_topology_whose_nodes_change_is_moved() -> None:
    now = cluster(4, 2, topology("t", 4, 4), topology("u", 4, 4))
    before = whole_nodes((), now, DEMAND, Allotment({"t": ("n1", "n2"), "u": ("n3",)})).placement
    assert workers_on(before) == {"n1": 2, "n2": 2, "n3": 2}
    now = cluster(4, 2, *now.topologies, placement=before)
    after = whole_nodes((), now, DEMAND, Allotment({"t": ("n1", "n2"), "u": ("n3", "n4")})).placement
    assert after.of_topology("t") == before.of_topology("t")
    assert workers_on(after.of_topology("u")) == {"n3": 2, "n4": 2}


def test_a_topology_without_nodes_is_refused_with_a_reason() -> None:
    decision = whole_nodes((), cluster(1, 2, topology("t", 2, 2)), DEMAND, Allotment({"t": ()}, starved=("t",)))
    assert len(decision.placement) == 0
    assert {r.reason for r in decision.unplaced} == {"t has no seat left on the 0 nodes it was given"}


def test_five_workers_on_two_machines() -> None:
    now = cluster(3, 4, topology("t", 10, 5, isolate=2), topology("u", 3, 3))
    decision = isolated((), now, DEMAND, Isolation()((), now, DEMAND))
    assert sorted(workers_on(decision.placement.of_topology("t")).values()) == [2, 3]
    assert not decision.unplaced
    mine = set(workers_on(decision.placement.of_topology("t")))
    assert not mine & set(workers_on(decision.placement.of_topology("u")))


def test_on_machines_of_two_slots_only_the_share_of_two_is_placed_and_the_others_wait() -> None:
    now = cluster(3, 2, topology("t", 10, 5, isolate=2), topology("u", 3, 3))
    decision = isolated((), now, DEMAND, Isolation()((), now, DEMAND))
    assert list(workers_on(decision.placement).values()) == [2]
    assert len(decision.placement.of_topology("t")) == 4
    assert sum(r.what.startswith("u/") for r in decision.unplaced) == 3


def test_topologies_that_are_not_isolated_are_served_in_order_of_submission() -> None:
    first, second = replace(topology("z", 2, 2), level=3), replace(topology("a", 9, 2), level=1)
    now = cluster(3, 1, topology("t", 2, 1, isolate=1), first, second)
    decision = isolated((), now, DEMAND, Isolation()((), now, DEMAND))
    assert len(decision.placement.of_topology("z")) == 2
    assert {r.what.partition("/")[0] for r in decision.unplaced} == {"a"}
