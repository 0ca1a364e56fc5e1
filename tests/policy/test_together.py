"""Operators that scale together get one number of instances, under every policy and from every plan."""

from dataclasses import replace

import pytest
from tests.policy.test_declared_bounds import world

from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.check import refusals, rescaled
from barograph.engines.sim import Simulator, parse_scenario
from barograph.model import BadInput, Demand, Forecast, Operator, OperatorDemand, Plan, ReasonCode, Rescale, Topology
from barograph.policy.declared_bounds import bound_reasons
from barograph.policy.registry import POLICIES, named
from barograph.policy.together import TogetherScaler, scaled_together

S = Operator("s", 1, source=True)


def pair(count: int = 2, **of_d: object) -> tuple[Operator, Operator, Operator]:
    d = Operator("d", count, stateful=True, scales_with=("k",), **of_d)  # type: ignore[arg-type]  # by name
    return S, d, Operator("k", count, stateful=True, scales_with=("d",))


def asked(**counts: int) -> TogetherScaler:
    demands = tuple(OperatorDemand("t", name, n, (60.0 / n,) * n, wanted=n) for name, n in counts.items())
    return TogetherScaler(lambda _h, _n, _f: Demand(demands))


@pytest.mark.parametrize(
    ("operators", "demanded", "given"),
    [
        (pair(), {"s": 1, "d": 2, "k": 4}, {"s": 1, "d": 4, "k": 4}),  # what the one with the greatest need gets
        (pair(3), {"s": 1, "d": 1, "k": 2}, {"s": 1, "d": 2, "k": 2}),  # fewer if each needs fewer
        (pair(3), {"s": 1, "d": 3, "k": 1}, {"s": 1, "d": 3, "k": 3}),  # not if one does not
        (pair(), {"s": 1, "d": 2, "k": 9}, {"s": 1, "d": 5, "k": 5}),  # 12 seats, one of them for the source
        (pair(max_parallelism=3), {"s": 1, "d": 2, "k": 4}, {"s": 1, "d": 3, "k": 3}),  # the bounds of each hold
        (pair(fixed_because="x"), {"s": 1, "d": 2, "k": 4}, {"s": 1, "d": 2, "k": 2}),
        (pair(), {"s": 1, "d": 2, "k": 2}, {"s": 1, "d": 2, "k": 2}),
    ],
)
def test_all_get_one_number(operators: tuple[Operator, ...], demanded: dict[str, int], given: dict[str, int]) -> None:
    now = world(*operators)
    demand = asked(**demanded)([], now, Forecast(()))
    assert {o.operator: o.parallelism for o in demand.operators} == given
    changed = {name for name, count in given.items() if demanded[name] != count}
    assert {r.about for r in bound_reasons(demand)} == {f"t/{name}" for name in changed}
    assert all(r.code is ReasonCode.SCALES_TOGETHER for r in bound_reasons(demand))
    for o in demand.operators:
        assert sum(o.shares_pct) == pytest.approx(60.0), "the same CPU in total"
    plan = Plan(rescales=tuple(Rescale("t", name, count) for name, count in given.items()))
    assert refusals(plan, now) == ()


def test_a_policy_is_not_changed_where_nothing_scales_together() -> None:
    policy = named(next(iter(POLICIES)))
    assert scaled_together(policy, world(S, Operator("k", 2, stateful=True))) is policy
    assert scaled_together(policy, world(*pair())) is not policy


def test_a_plan_that_names_one_is_for_all() -> None:
    now = world(*pair())
    (topology,) = now.topologies
    plan = Plan(rescales=(Rescale("t", "d", 3),))
    assert refusals(plan, now) == ()
    assert [o.parallelism for o in rescaled(topology, plan).operators] == [1, 3, 3]


@pytest.mark.parametrize(
    ("operators", "rescales", "why"),
    [
        (pair(), {"d": 3, "k": 4}, "k always has as many instances as d: scale both to the same number"),
        (pair(max_parallelism=3), {"k": 4}, "d, which scales with it, may have at most 3 instances"),
        (pair(min_parallelism=2), {"k": 1}, "d, which scales with it, must have at least 2 instances"),
        (pair(fixed_because="it is excluded"), {"k": 3}, "d, which scales with it, has to follow, and it is excluded"),
        (pair(), {"k": 6}, "13 instances need a seat each and there are 12 seats"),
    ],
)
def test_a_plan_that_some_cannot_follow_is_refused(
    operators: tuple[Operator, ...], rescales: dict[str, int], why: str
) -> None:
    plan = Plan(rescales=tuple(Rescale("t", name, count) for name, count in rescales.items()))
    assert refusals(plan, world(*operators))[0].reason == why


def test_scaling_together_is_mutual() -> None:
    with pytest.raises(BadInput, match="d scales with 'k', which does not scale with it"):
        Topology("t", (S, Operator("d", 2, scales_with=("k",)), Operator("k", 2)))


SCENARIO = """
name = "together"
title = "two operators with state, the second one five times as costly"
duration_s = 600
epoch_s = 20
cycle_s = 5
nodes = [{name = "n", count = 3, cpu_pct = 200, slots = 1, seats = 8, memory_mb = 8192}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 1, load = "ramp 0s=100 60s=700", cost_ms = 0.1},
  {name = "d", parallelism = 2, cost_ms = 0.5, stateful = true, state_mb = 5},
  {name = "k", parallelism = 2, cost_ms = 4, stateful = true, state_mb = 5},
]
edges = [{source = "s", target = "d", grouping = "fields"}, {source = "d", target = "k", grouping = "fields"}]
"""


@pytest.mark.parametrize("policy", ["adaptive", "autoscale", "true-rate"])
def test_in_the_simulator_they_grow_as_one(policy: str) -> None:
    scenario = parse_scenario(SCENARIO, "together")
    (workload,) = scenario.workloads
    s, d, k = workload.topology.operators
    tied = replace(workload.topology, operators=(s, replace(d, scales_with=("k",)), replace(k, scales_with=("d",))))
    simulator = Simulator(replace(scenario, workloads=(replace(workload, topology=tied),)), seed=1)
    simulator.start()
    decider = PolicyDecider(named(policy))
    counts = set()
    for _ in range(40):
        simulator.advance(5.0)
        outcome = simulator.apply(replace(decider.plan(simulator.observe()), version=None))
        assert outcome.ok, outcome.refused
        operators = {o.name: o.parallelism for o in simulator.topologies[0].operators}
        assert operators["d"] == operators["k"]
        counts.add(operators["k"])
    assert max(counts) > 2
    codes = {r.code for cycle in decider.cycles for r in cycle.plan.reasons}
    assert ReasonCode.SCALES_TOGETHER in codes
