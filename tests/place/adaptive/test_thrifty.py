"""Thrifty: few moves, little traffic, never overcommitted."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cycles import workers_on
from tests.place.worked import ALL, farm, six

from barograph.model import (
    Allotment,
    BadInput,
    Cycle,
    Demand,
    Edge,
    EdgeTraffic,
    Forecast,
    Instance,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    Plan,
    ReasonCode,
    Slot,
    Snapshot,
    Topology,
)
from barograph.place.adaptive.thrifty import Thrifty
from barograph.place.support.cost import traffic_between


def pair(
    present: dict[str, str], share: float = 100.0, state_mb: float = 0.0, nodes: int = 2
) -> tuple[Snapshot, Demand]:
    """a0, a1 -> b0, b1: each a sends to its own b only. Nodes have one worker of three seats and 300 %."""
    rows = np.array([[50.0, 0.0], [0.0, 50.0]])
    operators = (Operator("a", 2, True), Operator("b", 2, stateful=True, state_mb=state_mb))
    machines = tuple(Node(f"n{k}", 300) for k in range(nodes))
    now = Snapshot(
        0,
        1,
        machines,
        (Topology("t", operators, (Edge("a", "b"),)),),
        workers_on(machines, 3),
        Placement({Instance.parse(i, "t"): Slot(n) for i, n in present.items()}),
        traffic=(EdgeTraffic("t", "a", "b", rows),),
    )
    return now, Demand(tuple(OperatorDemand("t", o, 2, (share, share)) for o in "ab"))


def lasting(now: Snapshot, seconds: float = 1e5) -> tuple[tuple[Cycle, ...], Snapshot]:
    """The same after it has lasted long enough for a change to be worth its pause; and the history of that time."""
    return (Cycle(now, Forecast(()), Demand(()), Allotment(), Plan()),), replace(now, at_s=now.at_s + seconds)


CROSSED = {"a/0": "n0", "a/1": "n1", "b/0": "n1", "b/1": "n0"}


def moves(now: Snapshot, placement: Placement) -> list[str]:
    return [f"{m.instance.operator}{m.instance.index}" for m in now.placement.moves_to(placement)]


def test_the_worked_six_instances_are_placed_optimally() -> None:
    now, demand = six(farm(2, slots=3, cpu_pct=300), 2)
    placement = Thrifty()((), now, demand, ALL).placement
    assert traffic_between(now, demand, placement)[0] == pytest.approx(80)


def test_it_uses_no_more_nodes_than_needed() -> None:
    now, demand = pair({}, share=50, nodes=4)
    small = replace(now, workers=tuple(replace(w, seats=4) for w in now.workers))
    assert len({s.node for s in Thrifty()((), small, demand, ALL).placement.slots.values()}) == 1


def test_an_exchange_that_is_worth_it_is_made() -> None:
    seen, demand = pair(CROSSED, share=150)
    history, now = lasting(seen)
    placement = Thrifty()(history, now, demand, ALL).placement
    assert traffic_between(now, demand, placement)[0] == 0
    assert sorted(moves(now, placement)) in (["a0", "a1"], ["b0", "b1"])


def test_of_two_equal_exchanges_the_one_with_less_state_is_made() -> None:
    seen, demand = pair(CROSSED, share=150, state_mb=500)
    history, now = lasting(seen)
    assert moves(now, Thrifty()(history, now, demand, ALL).placement) == ["a0", "a1"]


def test_an_exchange_must_be_worth_its_pause() -> None:
    """All rows saved one hop of 1 ms: a pause of 0.7 s is worth it after 490 s, and not before."""
    seen, demand = pair(CROSSED, share=150)
    for seconds, moved in ((480.0, 0), (500.0, 2)):
        history, now = lasting(seen, seconds)
        decision = Thrifty()(history, now, demand, ALL)
        assert len(moves(now, decision.placement)) == moved
    (why,) = [r for r in decision.reasons if r.about == "cluster"]
    assert why.code is ReasonCode.TRAFFIC_SAVED
    assert (why.numbers["lasted_s"], why.numbers["pause_s"]) == (500.0, 0.7)


def test_a_node_is_emptied_once_the_load_is_known_and_then_not_too_often() -> None:
    seen, demand = pair(CROSSED, share=50)
    roomy = replace(seen, workers=tuple(replace(w, seats=8) for w in seen.workers))
    for seconds, used in ((20.0, 2), (30.0, 1)):
        history, now = lasting(roomy, seconds)
        found = Thrifty()(history, now, demand, ALL).placement
        assert len({s.node for s in found.slots.values()}) == used
    changed = replace(roomy, placement=Placement({**roomy.placement.slots, Instance("t", "a", 0): Slot("n1")}))
    for seconds, used in ((90.0, 2), (100.0, 1)):  # 0.7 s of pause in each 100 s are 0.7 % of the time
        (cycle,), now = lasting(roomy, seconds)
        earlier = replace(cycle, snapshot=changed)
        found = Thrifty()((earlier, replace(cycle, snapshot=roomy)), now, demand, ALL).placement
        assert len({s.node for s in found.slots.values()}) == used
    assert Thrifty(pack=False)(*lasting(roomy, 100.0), demand, ALL).placement == roomy.placement


def test_without_a_budget_no_optional_move_is_made() -> None:
    now, demand = pair(CROSSED, share=150)
    assert Thrifty(budget=0)((), now, demand, ALL).placement == now.placement


def test_when_something_is_lost_nothing_else_moves() -> None:
    now, demand = pair({k: v for k, v in CROSSED.items() if k != "b/1"}, share=75)
    assert moves(now, Thrifty()((), now, demand, ALL).placement) == ["b1"]


def test_overload_moves_stateless_instances_off_the_node() -> None:
    first_three = {"a/0": "n0", "a/1": "n0", "b/0": "n0"}
    now, demand = pair({**first_three, "b/1": "n1"}, share=140)
    decision = Thrifty()((), now, demand, ALL)
    moved = moves(now, decision.placement)
    assert len(moved) == 1
    assert moved[0] in ("a0", "a1")


def test_room_is_made_for_a_large_instance_that_fits_on_no_node() -> None:
    """x needs a whole node of memory and CPU; two small ones are on one node each and fit on either."""
    nodes = (Node("n0", 100), Node("n1", 100))
    topology = Topology("t", (Operator("s", 2, True), Operator("x", 1)), (Edge("s", "x"),))
    at = {Instance("t", "s", 0): Slot("n0"), Instance("t", "s", 1): Slot("n1")}
    now = Snapshot(0, 1, nodes, (topology,), workers_on(nodes, 4), Placement(at))
    demand = Demand((OperatorDemand("t", "s", 2, (30.0, 30.0)), OperatorDemand("t", "x", 1, (100.0,))))
    decision = Thrifty()((), now, demand, ALL)
    assert not decision.unplaced
    assert len(moves(now, decision.placement)) == 2


def test_only_allotted_nodes_are_used() -> None:
    now, demand = pair({}, share=50)
    decision = Thrifty()((), now, demand, Allotment({"t": ("n1",)}))
    assert {s.node for s in decision.placement.slots.values()} == {"n1"}
    assert len(decision.unplaced) == 1  # three seats for four


def test_bad_options() -> None:
    with pytest.raises(BadInput, match="budget must be a number of at least 0"):
        Thrifty(budget=-1)
