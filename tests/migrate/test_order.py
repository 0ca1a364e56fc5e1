"""No worker is overfull at any point, and what can share a cut shares it."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.migrate.order import steps
from barograph.migrate.plan import Migrate
from barograph.model import Demand, Instance, MigrationMode, Node, OperatorDemand, ReasonCode, Snapshot
from tests.cycles import workers_on
from tests.limit.tenants import placed, topologies_of


def world(seats: dict[str, int], present: dict[str, str]) -> Snapshot:
    """seats: of each node's one worker. present: topology/index -> node."""
    nodes = tuple(Node(n, 100, seats=s) for n, s in seats.items())
    return Snapshot(0, 1, nodes, topologies_of(present), workers_on(nodes), placed(present), version=7)


def test_moves_that_need_no_order_share_one_step() -> None:
    now = world({"x": 4, "y": 4}, {"t/0": "x", "u/0": "x"})
    order = steps(now, placed({"t/0": "y", "u/0": "y"}))
    assert [s.topologies for s in order] == [("t", "u")]


def test_an_instance_moves_in_only_after_another_has_moved_out() -> None:
    now = world({"x": 1, "y": 1, "z": 1}, {"t/0": "x", "u/0": "y"})
    order = steps(now, placed({"t/0": "y", "u/0": "z"}))
    assert [s.topologies for s in order] == [("u",), ("t",)]


def test_topologies_that_wait_for_each_other_are_cut_together() -> None:
    now = world({"x": 1, "y": 1}, {"t/0": "x", "u/0": "y"})
    order = steps(now, placed({"t/0": "y", "u/0": "x"}))
    assert [(s.topologies, s.joint) for s in order] == [(("t", "u"), True)]


def test_the_plan_names_what_changes_and_cuts_in_order() -> None:
    now = world({"x": 1, "y": 1, "z": 2}, {"t/0": "x", "u/0": "y", "v/0": "z"})
    target = placed({"t/0": "y", "u/0": "z", "v/0": "z"})
    plan = Migrate()((), now, Demand(()), target)
    assert plan.cuts == ("u", "t")
    assert plan.placement == placed({"t/0": "y", "u/0": "z"})
    assert plan.version == 7
    assert plan.mode is MigrationMode.CUT


def test_at_a_boundary_only_what_needs_no_order_moves_now() -> None:
    now = world({"x": 1, "y": 1, "z": 2}, {"t/0": "x", "u/0": "y"})
    plan = Migrate(MigrationMode.BOUNDARY)((), now, Demand(()), placed({"t/0": "y", "u/0": "z"}))
    assert plan.placement == placed({"u/0": "z"})
    assert plan.cuts == ()
    assert any(r.code is ReasonCode.WAITS_FOR_SEATS for r in plan.reasons)


def test_another_parallelism_is_a_rescale_that_shares_the_cut() -> None:
    now = world({"x": 4}, {"t/0": "x"})
    demand = Demand((OperatorDemand("t", "a", 2, (10.0, 20.0)),))
    plan = Migrate()((), now, demand, placed({"t/0": "x", "t/1": "x"}))
    assert [(r.operator, r.parallelism) for r in plan.rescales] == [("a", 2)]
    assert plan.cuts == ("t",)
    assert plan.shares_pct == {Instance("t", "a", 0): 10.0, Instance("t", "a", 1): 20.0}


def test_what_holds_already_is_an_empty_plan() -> None:
    now = world({"x": 4}, {"t/0": "x"})
    plan = Migrate()((), now, Demand(()), now.placement)
    assert not plan.placement
    assert plan.cuts == ()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_worker_is_overfull_at_any_point(data: st.DataObject) -> None:
    nodes = ["x", "y", "z"]
    names = [f"{t}/{k}" for t in "tuvw" for k in range(2)]
    before = {i: data.draw(st.sampled_from(nodes)) for i in names}
    after = {i: data.draw(st.sampled_from(nodes)) for i in names}
    seats = {n: max(1, *(Counter(p.values())[n] for p in (before, after))) for n in nodes}
    now = world(seats, before)
    at = dict(now.placement.slots)
    for step in steps(now, placed(after)):
        for name in data.draw(st.permutations(step.topologies)):  # the order in which epochs end is not known
            at.update({m.instance: m.target for m in step.moves if m.instance.topology == name and m.target})
            if not step.joint:
                assert all(c <= seats[s.node] for s, c in Counter(at.values()).items())
        assert all(c <= seats[s.node] for s, c in Counter(at.values()).items())
    assert at == placed(after).slots
