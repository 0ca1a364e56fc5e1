"""How many nodes the room of instances takes."""

from dataclasses import replace

from tests.cycles import chain, nodes, seen, work

from barograph.model import Node, Operator, OperatorDemand, Snapshot
from barograph.scale.adaptive.reserve import nodes_for


def now(*cluster: Node, seats: int = 100, memory_mb: float | None = None) -> Snapshot:
    topology = chain(Operator("s", 1, source=True), Operator("a", 3, memory_mb=memory_mb))
    return seen(topology, {"s": work(1.0), "a": work(1.0)}, cluster=cluster, seats=seats)


def demands(source_pct: float, *shares_pct: float) -> list[OperatorDemand]:
    return [OperatorDemand("t", "s", 1, (source_pct,)), OperatorDemand("t", "a", len(shares_pct), shares_pct)]


def test_the_fewest_nodes_largest_first() -> None:
    assert nodes_for(demands(10, 30, 30, 30), now(*nodes(4, 100.0))) == 1
    assert nodes_for(demands(10, 31, 30, 30), now(*nodes(4, 100.0))) == 2
    assert nodes_for(demands(10, 30, 30, 30), now(Node("n1", 20.0, 1), Node("n2", 100.0, 1))) == 1


def test_an_instance_is_on_one_node() -> None:
    assert nodes_for(demands(40, 40, 40, 40), now(*nodes(4, 60.0))) == 4, "the sum would fit on three"


def test_where_they_do_not_fit_all_nodes_are_taken() -> None:
    assert nodes_for(demands(50, 70, 70, 70), now(*nodes(3, 60.0))) == 3


def test_seats_and_memory_take_nodes_too() -> None:
    assert nodes_for(demands(1, 1, 1, 1), now(*nodes(4, 100.0), seats=3)) == 2
    small = tuple(replace(n, memory_mb=500.0) for n in nodes(4, 100.0))
    assert nodes_for(demands(1, 1, 1, 1), now(*small, memory_mb=400.0)) == 3
    assert nodes_for(demands(1, 1, 1, 1), now(*small)) == 1


def test_what_is_reserved_counts_where_it_is_known() -> None:
    roomy = [replace(o, reserved_pct=tuple(2 * s for s in o.shares_pct)) for o in demands(10, 30, 30, 30)]
    assert nodes_for(roomy, now(*nodes(4, 100.0))) == 3, "two of 60 % are on two nodes"
