"""What a target costs: CPU and nodes, with it and without, beside other topologies."""

from dataclasses import replace

import pytest
from tests.cycles import chain, nodes, seen, work

from barograph.model import Operator, OperatorDemand, Snapshot
from barograph.scale.adaptive.cost import Cost, cost_of


def now(quota_pct: float | None = None) -> Snapshot:
    mine = replace(chain(Operator("s", 2, source=True)), quota_cpu_pct=quota_pct)
    other = chain(Operator("o", 2, source=True), name="u")
    return seen([mine, other], {"t": {"s": work(1.0)}, "u": {"o": work(1.0)}}, cluster=nodes(4, 100.0))


def demand(topology: str, operator: str, share_pct: float) -> OperatorDemand:
    return OperatorDemand(topology, operator, 2, (share_pct, share_pct))


def as_much(o: OperatorDemand) -> OperatorDemand:
    return o


def test_the_nodes_of_other_topologies_are_not_its_cost() -> None:
    all_demands = [demand("t", "s", 60.0), demand("u", "o", 60.0)]
    cost = cost_of("t", now(), all_demands, [demand("t", "s", 40.0)], as_much)
    assert cost == Cost(120.0, 80.0, nodes=4, plain_nodes=2)
    assert cost.numbers == {"share_pct": 120.0, "bought_pct": 40.0, "nodes": 4.0, "bought_nodes": 2.0}


def test_a_quota_bounds_both() -> None:
    cost = cost_of("t", now(60.0), [demand("t", "s", 60.0)], [demand("t", "s", 40.0)], as_much)
    assert [cost.share_pct, cost.plain_pct] == pytest.approx([60.0, 60.0])
    assert (cost.nodes, cost.plain_nodes) == (1, 1)


def test_in_words() -> None:
    more = "120 % of a core in all, 40 % more than without a target, which fits on 4 nodes, 2 more than without it"
    assert Cost(120.0, 80.0, 4, 2).text == more
    less = "60 % of a core in all, 20 % less than without a target, which fits on 1 node, 1 fewer than without it"
    assert Cost(60.0, 80.0, 1, 2).text == less
    assert Cost(60.0, 60.0, 2, 2).text.endswith("which fits on 2 nodes, as many as without it")
