"""Few-disturbed placement (Liu et al.): worked examples on 3 nodes of 600 %."""

from itertools import pairwise

import pytest

from barograph.model import (
    Demand,
    Edge,
    Instance,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    Slot,
    Snapshot,
    Topology,
    Worker,
)
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


def test_only_instances_that_do_not_fit_move_and_no_other_worker_is_disturbed() -> None:
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


def test_instances_without_room_are_refused_and_the_others_stay() -> None:
    now, demand = world({"x": 500.0, "y": 300.0}, {"n1": {"x": range(1)}, "n2": {"x": range(1, 2), "y": range(3)}})
    decision = FewDisturbed()((), now, demand, ALL)
    assert [r.what for r in decision.unplaced] == ["t/y/2"]
    assert "fit on no node" in decision.unplaced[0].reason


def test_nodes_keep_the_order_they_had_before_the_first_worker_was_reserved() -> None:
    """n1 has 100 left, n2 90. Only n1 has room for n3's stateless 95; then n1 has least left, but n2 stays second."""
    now, demand = world(
        {"x": 500.0, "y": 510.0, "z": 95.0, "sf1": 4.0},
        {"n1": {"x": range(1)}, "n2": {"y": range(1)}, "n3": {"z": range(1), "sf1": range(1)}},
    )
    decision = FewDisturbed()([], now, demand, ALL)
    assert nodes_of(decision.placement) == {"n1": ["x0", "z0"], "n2": ["sf10", "y0"]}


def test_room_reserved_for_the_first_worker_is_not_available_for_the_second() -> None:
    """n1 has 150 left: enough for either of n2's workers, not for both, and there is no other node."""
    now, demand = world(
        {"x": 450.0, "y": 100.0, "sf1": 100.0}, {"n1": {"x": range(1)}, "n2": {"y": range(1), "sf1": range(1)}}
    )
    assert nodes_of(FewDisturbed()([], now, demand, ALL).placement) == {"n1": ["x0"], "n2": ["sf10", "y0"]}


def shared_world(placement: Placement, workers: int = 2, seats: int = 8) -> tuple[Snapshot, Demand]:
    """Two word counts on one node whose workers all topologies share, as on Spark."""
    operators = (Operator("spout", 2, source=True), Operator("count", 2, stateful=True))
    topologies = tuple(Topology(name, operators, (Edge("spout", "count"),)) for name in ("t", "u"))
    node = Node("n1", 600, slots=workers, seats=seats)
    live = tuple(Worker(Slot("n1", k), f"w{k}", seats) for k in range(workers))
    now = Snapshot(0, 10, (node,), topologies, live, placement=placement, shared_workers=True)
    demand = Demand(tuple(OperatorDemand(t, o, 2, (20.0, 20.0)) for t in ("t", "u") for o in ("spout", "count")))
    return now, demand


def kinds_in(placement: Placement) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for i, slot in placement.slots.items():
        found.setdefault(slot.index, set()).add(i.operator)
    return found


def test_on_shared_workers_all_topologies_keep_state_in_the_same_one() -> None:
    now, demand = shared_world(Placement())
    found = FewDisturbed()([], now, demand, ALL).placement
    assert len(found.slots) == 8
    assert kinds_in(found) == {0: {"spout"}, 1: {"count"}}


def test_stateless_instances_move_out_of_a_worker_with_stateful_ones() -> None:
    mixed = {Instance(t, o, k): Slot("n1", 0) for t in ("t", "u") for o in ("spout", "count") for k in range(2)}
    now, demand = shared_world(Placement(mixed))
    found = FewDisturbed()([], now, demand, ALL).placement
    assert kinds_in(found) == {0: {"count"}, 1: {"spout"}}
    again = FewDisturbed()([], shared_world(found)[0], demand, ALL).placement
    assert again == found


@pytest.mark.parametrize(("workers", "seats"), [(1, 8), (2, 4)], ids=["one worker", "no seat to leave for"])
def test_kinds_share_a_worker_if_there_is_no_other(workers: int, seats: int) -> None:
    """No instance stays without a place because of its kind."""
    now, demand = shared_world(Placement(), workers, seats)
    found = FewDisturbed()([], now, demand, ALL)
    assert not found.unplaced
    assert len(found.placement.slots) == 8
