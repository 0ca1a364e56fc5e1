"""Isolation on too few slots: what Storm leaves unplaced stays unplaced."""

from barograph.allot import Isolation
from barograph.model import Demand, Operator, Snapshot, Topology
from barograph.place.isolated import isolated
from tests.cycles import nodes

FIVE = Topology("a", (Operator("s", 10, source=True),), workers=5, isolate_nodes=2)


def placed(slots: int) -> tuple[int, int]:
    """How many instances have a place, and how many have none, on machines with so many slots."""
    now = Snapshot(0.0, 10.0, nodes(2, 100, slots), (FIVE,), shared_workers=False)
    found = isolated(now, Demand(()), Isolation()([], now, Demand(())))
    return len(found.placement), len(found.unplaced)


def test_five_workers_on_machines_of_three_slots() -> None:
    assert placed(3) == (10, 0)


def test_on_machines_of_two_slots_only_the_share_of_two_is_placed() -> None:
    assert placed(2) == (4, 6)
