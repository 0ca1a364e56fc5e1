"""Few-disturbed placement: the worked examples of adaptive.md (3 nodes of 600 %)."""

from itertools import pairwise

import pytest

from barograph.model import Demand, Edge, Instance, Node, Operator, OperatorDemand, Placement, Slot, Snapshot, Topology
from barograph.place.few_disturbed import FewDisturbed
from tests.place.worked import ALL

Layout = dict[str, dict[str, range]]
NODES = tuple(Node(f"n{k}", 600, slots=2) for k in (1, 2, 3))
STATEFUL = {"count", "sf1", "sf2", "sf3"}


def world(shares: dict[str, float], layout: Layout) -> tuple[Snapshot, Demand]:
    """layout: node -> operator -> which instances; stateful operators in slot 1, stateless ones in slot 0."""
    counts = {o: 1 + max(max(r) for held in layout.values() for q, r in held.items() if q == o) for o in shares}
    placed = {
        Instance("t", o, k): Slot(node, int(o in STATEFUL))
        for node, held in layout.items()
        for o, indices in held.items()
        for k in indices
    }
    names = list(shares)
    operators = tuple(Operator(o, counts[o], source=o == names[0], stateful=o in STATEFUL) for o in names)
    edges = tuple(Edge(a, b) for a, b in pairwise(names))
    now = Snapshot(0, 10, NODES, (Topology("t", operators, edges),), placement=Placement(placed), shared_workers=False)
    demand = Demand(tuple(OperatorDemand("t", o, counts[o], (s,) * counts[o]) for o, s in shares.items()))
    return now, demand


def nodes_of(placement: Placement) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for i, slot in sorted(placement.slots.items()):
        found.setdefault(slot.node, []).append(f"{i.operator}{i.index}")
    return found


def named(operator: str, count: range) -> list[str]:
    return [f"{operator}{k}" for k in count]


def test_all_on_one_node_the_stateless_worker_is_disturbed() -> None:
    four = range(4)
    now, demand = world({"spout": 40, "split": 80, "count": 100}, {"n1": {"spout": four, "split": four, "count": four}})
    decision = FewDisturbed()((), now, demand, ALL)
    assert nodes_of(decision.placement) == {
        "n1": named("count", four) + named("spout", four),
        "n2": named("split", four),
    }
    assert decision.reasons[0].numbers["disturbed_stateful_workers"] == 0


def test_only_what_does_not_fit_goes_where_nobody_is_disturbed() -> None:
    now, demand = world(
        {"x": 560, "s": 40, "sf1": 400, "sf2": 300},
        {"n1": {"x": range(1)}, "n2": {"sf1": range(1), "s": range(6)}, "n3": {"sf2": range(1)}},
    )
    decision = FewDisturbed(scale_in=False)((), now, demand, ALL)
    assert nodes_of(decision.placement) == {
        "n1": ["x0"],
        "n2": [*named("s", range(5)), "sf10"],
        "n3": ["s5", "sf20"],
    }
    assert decision.placement[Instance("t", "s", 5)] != decision.placement[Instance("t", "sf2", 0)]


def test_one_spout_moves_to_a_used_node() -> None:
    four = range(4)
    now, demand = world(
        {"spout": 60, "split": 60, "count": 100}, {"n1": {"spout": four, "count": four}, "n2": {"split": four}}
    )
    decision = FewDisturbed()((), now, demand, ALL)
    moves = now.placement.moves_to(decision.placement)
    assert [(str(m.instance), str(m.target)) for m in moves] == [("t/spout/3", "n2/0")]


@pytest.mark.parametrize(
    ("shares", "layout", "expected"),
    [
        pytest.param(
            {"x": 500.0, "y": 80.0, "sf1": 340.0, "sf2": 250.0},
            {"n1": {"x": range(1)}, "n2": {"sf1": range(1)}, "n3": {"y": range(1), "sf2": range(1)}},
            {"n1": ["x0", "y0"], "n2": ["sf10", "sf20"]},
            id="both workers of n3 find a target",
        ),
        pytest.param(
            {"x": 440.0, "y": 160.0},
            {"n1": {"x": range(1)}, "n2": {"y": range(1)}},
            {"n1": ["x0"], "n2": ["y0"]},
            id="exactly what is left is not enough",
        ),
    ],
)
def test_scale_in(shares: dict[str, float], layout: Layout, expected: dict[str, list[str]]) -> None:
    now, demand = world(shares, layout)
    assert nodes_of(FewDisturbed()((), now, demand, ALL).placement) == expected


def test_what_finds_no_room_is_named_and_the_rest_stays() -> None:
    now, demand = world({"x": 500.0, "y": 300.0}, {"n1": {"x": range(1)}, "n2": {"x": range(1, 2), "y": range(3)}})
    decision = FewDisturbed()((), now, demand, ALL)
    assert [r.what for r in decision.unplaced] == ["t/y/2"]
    assert "find no node with room" in decision.unplaced[0].reason
