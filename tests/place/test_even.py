"""Storm's default scheduler: worked numbers and its laws."""

from dataclasses import replace

from barograph.model import Allotment, Demand, Instance, Node, Operator, Placement, Slot, Snapshot, Topology
from barograph.place.even import even


def cluster(slots: list[int], instances: int, workers: int, placement: Placement | None = None) -> Snapshot:
    return Snapshot(
        at_s=0,
        cycle_s=10,
        nodes=tuple(Node(f"n{k + 1}", 400, slots=s) for k, s in enumerate(slots)),
        topologies=(Topology("t", (Operator("a", instances),), workers=workers),),
        placement=placement or Placement(),
        shared_workers=False,
    )


def shape(placement: Placement) -> dict[str, set[int]]:
    return {str(slot): {i.index for i in held} for slot, held in placement.by_slot().items()}


def test_six_instances_go_round_robin_over_four_workers() -> None:
    decision = even((), cluster([2, 3, 4], 6, 4), Demand(()), Allotment())
    assert shape(decision.placement) == {"n3/0": {0, 4}, "n2/0": {1, 5}, "n1/0": {2}, "n3/1": {3}}


def test_a_slot_off_the_ideal_split_is_freed() -> None:
    present = Placement({Instance("t", "a", k): Slot("n1", 0 if k < 4 else 1) for k in range(10)})
    decision = even((), cluster([2, 3], 10, 3, present), Demand(()), Allotment())
    held = shape(decision.placement)
    assert sorted(map(len, held.values())) == [3, 3, 4]
    assert held["n1/0"] == {0, 1, 2, 3}


def test_a_complete_running_topology_is_not_moved() -> None:
    present = Placement({Instance("t", "a", k): Slot("n1", 0 if k < 5 else 1) for k in range(6)})
    assert even((), cluster([2, 3], 6, 2, present), Demand(()), Allotment()).placement == present


def test_topologies_are_served_in_order_of_submission_whatever_their_level_and_size() -> None:
    small = Topology("small", (Operator("a", 2),), workers=2, level=3)
    large = Topology("large", (Operator("a", 6),), workers=6, level=1)
    found = {}
    for order in ((small, large), (large, small)):
        now = replace(cluster([1, 1, 1], 1, 1), topologies=order)
        decision = even([], now, Demand(()), Allotment())
        found[order[0].name] = {i.topology for i in decision.placement}, {r.what for r in decision.unplaced}
    assert found["small"][0] == {"small", "large"}
    assert found["large"] == ({"large"}, {"small/a/0", "small/a/1"})
