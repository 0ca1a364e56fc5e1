"""One cycle of the controller under every policy: pure, complete, and an empty plan when nothing changes."""

from dataclasses import replace

import pytest
from tests.cycles import chain, nodes, seen, work

from barograph.control.decide import decide, decide_between
from barograph.model import (
    Cycle,
    Edge,
    Grouping,
    Instance,
    Operator,
    Outcome,
    Placement,
    Reason,
    ReasonCode,
    Snapshot,
    Topology,
)
from barograph.policy.definition import Policy
from barograph.policy.registry import POLICIES, named

TOPOLOGY = Topology(
    "wc",
    (
        Operator("spout", 2, source=True, cpu_pct=20.0, memory_mb=100.0),
        Operator("split", 2, cpu_pct=30.0, memory_mb=100.0),
        Operator("count", 2, cpu_pct=30.0, memory_mb=100.0, stateful=True),
    ),
    (Edge("spout", "split"), Edge("split", "count", Grouping.FIELDS)),
    desired_nodes=2,
    minimum_nodes=1,
    isolate_nodes=2,
)
NUMBERS = {"spout": work(1000), "split": work(1000, out=5, ms=4), "count": work(5000, out=0)}
each = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def world(placement: Placement | None = None) -> Snapshot:
    return seen(TOPOLOGY, NUMBERS, cluster=nodes(3, 200, slots=2, seats=8), placement=placement)


def settle(policy: Policy, turns: int = 4) -> list[Cycle]:
    """Cycles of the controller on a cluster that applies every plan and never changes by itself."""
    now, history = world(), list[Cycle]()
    for _ in range(turns):
        cycle = decide(policy, history, now)
        history.append(replace(cycle, outcome=Outcome(("all of it",))))
        now = world(Placement({**now.placement.slots, **cycle.plan.placement.slots}))
    return history


def test_what_is_said_of_a_target_stands_until_something_else_is_said() -> None:
    """Of a load that rests nothing is said."""
    held, missed = ReasonCode.TARGET_HELD, ReasonCode.TARGET_MISSED
    adaptive, history, news = named("adaptive"), list[Cycle](), []
    for code in (held, held, None, held, missed, None, missed, held):
        reasons = () if code is None else (Reason("wc", code, "why"),)
        policy = replace(adaptive, scaler=lambda *seen, said=reasons: replace(adaptive.scaler(*seen), reasons=said))
        history.append(cycle := decide(policy, history, world()))
        news.append(next((r.code for r in cycle.plan.reasons if r.about == "wc" and r.code in (held, missed)), None))
    assert news == [held, None, None, None, missed, None, None, held]


@each
def test_everything_is_placed_and_then_nothing_moves(policy: Policy) -> None:
    first, *_, last = settle(policy)
    placed = set(first.plan.placement)
    assert placed == (set() if policy.name == "spark" else set(TOPOLOGY.instances()))
    assert not first.plan.rescales
    assert not last.plan.placement.slots
    assert not last.plan.cuts


@each
def test_the_same_input_gives_the_same_cycle(policy: Policy) -> None:
    history = settle(policy, 2)
    now = world(history[0].plan.placement)
    assert decide(policy, history, now) == decide(policy, history, now)


@each
def test_a_decision_says_what_was_seen_and_why(policy: Policy) -> None:
    cycle = settle(policy, 1)[0]
    assert cycle.snapshot == world()
    assert cycle.plan.version == cycle.snapshot.version
    assert all(o.reason is not None and o.reason.numbers for o in cycle.forecast.operators)
    assert all(o.reason is not None and o.reason.numbers for o in cycle.demand.operators)


ENFORCING = {"adaptive", "liu", "fixed", "fixed-mean", "fixed-peak", "fixed-equal"}


@each
def test_only_policies_that_enforce_shares_write_them(policy: Policy) -> None:
    shares = settle(policy, 1)[0].plan.limits_pct
    assert set(shares) == (set(TOPOLOGY.instances()) if policy.name in ENFORCING else set())


def test_what_is_not_placed_is_among_the_plans_reasons() -> None:
    big = replace(TOPOLOGY, operators=(Operator("spout", 1, source=True, cpu_pct=90.0), *TOPOLOGY.operators[1:]))
    now = seen(big, {"spout": work(10)}, cluster=nodes(1, 50))
    cycle = decide(POLICIES["r-storm"], [], now)
    left = {r.about for r in cycle.plan.reasons if r.code is ReasonCode.NOT_PLACED}
    assert str(Instance("wc", "spout", 0)) in left


def test_where_cpu_is_short_limits_let_instances_use_what_others_leave() -> None:
    now = seen(TOPOLOGY, {**NUMBERS, "split": work(9000, 2000, ms=90, pending=9000)}, cluster=nodes(1, 200, seats=8))
    cycle = decide(POLICIES["adaptive"], [], now)
    asked = cycle.demand.of("wc", "split")
    assert asked is not None
    assert sum(cycle.plan.limits_pct.values()) > 200 >= sum(sum(o.shares_pct) for o in cycle.demand.operators) - 1e-6
    assert cycle.plan.limits_pct[Instance("wc", "split", 0)] == asked.ceilings_pct[0]


def test_a_topology_without_a_node_rests_and_the_others_do_not() -> None:
    """DPS on two nodes: the higher level takes both."""
    high, low = replace(TOPOLOGY, name="high", level=1), replace(TOPOLOGY, name="low", level=2)
    now = replace(seen(high, NUMBERS, cluster=nodes(2, 200, slots=2, seats=8)), topologies=(high, low))
    assert decide(POLICIES["dps"], [], now).plan.rests == ("low",)
    assert decide(POLICIES["dps"], [], replace(now, topologies=(high,))).plan.rests == ()


def test_a_plan_says_whether_triggers_mean_anything_to_its_policy() -> None:
    heeds = {name: decide(policy, [], world()).plan.heeds_triggers for name, policy in POLICIES.items()}
    assert {name for name, on in heeds.items() if on} == {"dps", "adaptive"}
    assert heeds["sps"] is False


def test_a_second_level_that_changes_in_the_same_cycle_keeps_the_nodes_of_the_first() -> None:
    """Nodes are kept by the present placement; by that of a cycle ago, a would get other nodes and move again."""
    a, b, c = (replace(chain(Operator("s", 3, source=True), name=n), desired_nodes=3, workers=3) for n in "abc")
    numbers = {name: {"s": work(10)} for name in "abc"}
    dps = named("dps")

    def at(*levels: int, placement: Placement | None = None) -> Snapshot:
        them = [replace(t, level=n) for t, n in zip((a, b, c), levels, strict=True)]
        return seen(them, numbers, cluster=nodes(6, 100.0, seats=8), placement=placement)

    first = decide(dps, [], at(2, 2, 2))
    history = [first, decide(dps, [first], at(2, 2, 2, placement=first.plan.placement))]
    present, found = first.plan.placement.slots, []
    for levels in ((2, 1, 2), (2, 1, 1)):
        now = at(*levels, placement=Placement(present))
        history[-1] = decide_between(dps, history, now)
        present = {**present, **history[-1].plan.placement.slots}
        found.append(history[-1].allotment.nodes)
    assert [len(found[1][name]) for name in "abc"] == [0, 3, 3]
    assert found[1]["b"] == found[0]["b"]
    stale = decide(dps, [first], now).allotment.nodes["b"]
    assert stale != found[0]["b"], "the placement of a cycle ago is not used"
