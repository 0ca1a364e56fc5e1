"""Seats are kept free so that after the loss of a node all instances fit on the others."""

import pytest

from barograph.model import Node, Slot, Snapshot, Worker
from barograph.scale.adaptive.instances import Growth
from barograph.scale.protocol import spare_seats


def cluster(seats: dict[str, int], asleep: dict[str, int] | None = None) -> Snapshot:
    """Seats by node."""
    nodes = tuple(Node(n, 100, seats=s) for n, s in seats.items())
    workers = tuple(Worker(Slot(n), n, s) for n, s in seats.items())
    return Snapshot(0, 1, nodes, (), workers, asleep=tuple(Node(n, 100, seats=s) for n, s in (asleep or {}).items()))


@pytest.mark.parametrize(
    ("seats", "asleep", "spare"),
    [
        ({"x": 8, "y": 8, "z": 8}, {}, 8),
        ({"x": 4, "y": 16}, {}, 16),
        ({"x": 8}, {}, 0),
        ({"x": 8, "y": 8}, {"z": 8}, 0),
        ({"x": 8, "y": 8}, {"z": 5}, 3),
    ],
)
def test_the_seats_of_the_largest_node_are_left_free(seats: dict[str, int], asleep: dict[str, int], spare: int) -> None:
    now = cluster(seats, asleep)
    assert spare_seats(now) == spare
    assert Growth.of((), now, 1, 1, 1).free_seats == sum(seats.values()) - spare
