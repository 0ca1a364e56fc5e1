"""Every policy keeps to what the owner of a topology declares, and says what was held back; also in the simulator."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.control.test_loop import SCENARIO

from barograph.control.decide import decide
from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Simulator, parse_scenario
from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Forecast,
    Instance,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    ReasonCode,
    Slot,
    Snapshot,
    Topology,
    Worker,
)
from barograph.place import PlaceDecision
from barograph.policy.declared_bounds import BOUNDED, BoundedScaler, QuotaLimiter, QuotaPlacer, within_bounds
from barograph.policy.registry import POLICIES, named

S, K = Operator("s", 1, source=True), Operator("k", 2)
SLOTS = tuple(Slot(f"n{n}", 0) for n in range(3))


def world(
    *operators: Operator, placement: dict[Instance, Slot] | None = None, seats: int = 4, **quota: float
) -> Snapshot:
    nodes = tuple(Node(s.node, 100.0) for s in SLOTS)
    workers = tuple(Worker(s, s.node, seats) for s in SLOTS)
    topology = Topology("t", operators or (S, K), **quota)  # type: ignore[arg-type]  # by name
    return Snapshot(10.0, 2.0, nodes, (topology,), workers, Placement(placement or {}))


def scaler(*demands: OperatorDemand):  # type: ignore[no-untyped-def]
    return BoundedScaler(lambda _h, _n, _f: Demand(demands))


def asked(count: int, share: float = 30.0, wanted: int = 0) -> OperatorDemand:
    return OperatorDemand("t", "k", count, (share,) * count, wanted=wanted)


@pytest.mark.parametrize(
    ("operator", "demand", "count", "code"),
    [
        (Operator("k", 2, max_parallelism=3), asked(5), 3, ReasonCode.MOST_INSTANCES),
        (Operator("k", 3, max_parallelism=3), asked(3, wanted=6), 3, ReasonCode.MOST_INSTANCES),
        (Operator("k", 2, max_parallelism=3), asked(3, wanted=3), 3, None),
        (Operator("k", 2, max_parallelism=4), asked(2, wanted=6), 2, None),  # something else holds it back
        (Operator("k", 4, min_parallelism=4), asked(2), 4, ReasonCode.LEAST_INSTANCES),
        (Operator("k", 4, min_parallelism=4), asked(4, wanted=1), 4, ReasonCode.LEAST_INSTANCES),
        (Operator("k", 2, min_parallelism=4), asked(2), 4, ReasonCode.LEAST_INSTANCES),
        (Operator("k", 2, excluded=True), asked(5), 2, ReasonCode.EXCLUDED_FROM_SCALING),
        (Operator("k", 2, excluded=True), asked(2, wanted=4), 2, ReasonCode.EXCLUDED_FROM_SCALING),
        (Operator("k", 2, excluded=True), asked(2, wanted=2), 2, None),
        (Operator("k", 2, min_parallelism=4, fixed_because="of its source"), asked(2), 2, None),
        (Operator("k", 2), asked(9), 9, None),
    ],
)
def test_instances_are_within_their_bounds(
    operator: Operator, demand: OperatorDemand, count: int, code: ReasonCode | None
) -> None:
    (found,) = scaler(demand)((), world(S, operator), Forecast(())).operators
    assert (found.parallelism, None if found.reason is None else found.reason.code) == (count, code)
    assert sum(found.shares_pct) == pytest.approx(sum(demand.shares_pct))


def test_shares_and_reserves_are_cut_to_the_quota() -> None:
    source = OperatorDemand("t", "s", 1, (60.0,), reserved_pct=(80.0,))
    demand = scaler(source, asked(2, 70.0))((), world(quota_cpu_pct=100.0), Forecast(()))
    assert [o.shares_pct for o in demand.operators] == [(30.0,), (35.0, 35.0)]
    assert sum(sum(o.reserved_pct or o.shares_pct) for o in demand.operators) <= 110.0
    reasons = [o.reason for o in demand.operators]
    assert [r.code for r in reasons if r] == [ReasonCode.CPU_QUOTA] * 2
    assert reasons[0] is not None and dict(reasons[0].numbers) == {"asked_pct": 200.0, "quota_pct": 100.0}
    free = scaler(source, asked(2, 10.0))((), world(quota_cpu_pct=120.0), Forecast(()))
    assert [o.shares_pct for o in free.operators] == [(60.0,), (10.0, 10.0)]


def test_limits_are_cut_to_the_quota_also_where_the_policy_limits_nothing() -> None:
    demand, now = Demand((asked(2, 30.0),)), world(K, quota_cpu_pct=50.0)
    lent = {Instance("t", "k", 0): 90.0, Instance("t", "k", 1): 60.0, Instance("u", "k", 0): 90.0}
    found = QuotaLimiter(lambda *_: lent)((), now, demand, Placement())
    assert found == {Instance("t", "k", 0): 30.0, Instance("t", "k", 1): 20.0, Instance("u", "k", 0): 90.0}
    none = QuotaLimiter(lambda *_: {})((), now, demand, Placement())
    assert none == {Instance("t", "k", 0): 25.0, Instance("t", "k", 1): 25.0}


def placed(now: Snapshot, places: dict[Instance, Slot]) -> PlaceDecision:
    def placer(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
        return PlaceDecision(Placement(places))

    return QuotaPlacer(placer)((), now, Demand(()), Allotment())


def test_instances_are_gathered_on_the_quota_of_workers() -> None:
    instances = [Instance("t", "s", 0), Instance("t", "k", 0), Instance("t", "k", 1)]
    spread = dict(zip(instances, SLOTS, strict=True))
    found = placed(world(quota_workers=2, placement={instances[2]: SLOTS[2]}), spread)
    assert set(found.placement.slots.values()) == {SLOTS[2], SLOTS[0]} and found.placement[instances[2]] == SLOTS[2]
    assert [r.code for r in found.reasons] == [ReasonCode.WORKER_QUOTA]
    again = placed(world(quota_workers=2, placement=dict(found.placement.slots)), dict(found.placement.slots))
    assert again.placement == found.placement and again.reasons == (), "called again it changes nothing"


def test_a_quota_of_workers_that_holds_too_few_instances_is_told() -> None:
    instances = [Instance("t", "s", 0), Instance("t", "k", 0), Instance("t", "k", 1)]
    spread = dict(zip(instances, SLOTS, strict=True))
    found = placed(world(quota_workers=2, seats=1), spread)
    assert dict(found.placement.slots) == spread
    assert [r.code for r in found.reasons] == [ReasonCode.WORKER_QUOTA_SHORT]


def test_where_nothing_is_declared_the_policy_is_unchanged() -> None:
    policy = named("adaptive")
    assert within_bounds(policy, world()) is policy


def declared(now: Snapshot, **fields: object) -> Snapshot:
    """The snapshot with these fields of operator k, or of the topology."""
    quota = {n: fields.pop(n) for n in tuple(fields) if n.startswith("quota")}
    (topology,) = now.topologies
    operators = tuple(replace(o, **fields) if o.name == "k" else o for o in topology.operators)  # type: ignore[arg-type]
    return replace(now, topologies=(replace(topology, operators=operators, **quota),))  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["adaptive", "autoscale", "true-rate", "even", "liu"])
def test_in_the_simulator_every_policy_keeps_to_them(policy: str) -> None:
    assert policy in POLICIES
    simulator = Simulator(parse_scenario(SCENARIO, "loop"), seed=1)
    simulator.start()
    decider = PolicyDecider(named(policy))
    codes = set()
    for _ in range(6):
        simulator.advance(5.0)
        now = declared(simulator.observe(), min_parallelism=3, max_parallelism=3, quota_cpu_pct=60.0, quota_workers=1)
        plan = decider.plan(now)
        cycle = decider.cycles[-1]
        demand = cycle.demand.of("t", "k")
        assert demand is not None and demand.parallelism == 3
        assert sum(sum(o.shares_pct) for o in cycle.demand.operators) <= 60.0 + 1e-6
        assert sum(plan.limits_pct.values()) <= 60.0 + 1e-6
        places = {**now.placement.slots, **plan.placement.slots}
        codes |= {r.code for r in plan.reasons}
        assert len(set(places.values())) == 1 or ReasonCode.WORKER_QUOTA_SHORT in codes
        simulator.apply(replace(plan, version=None))
    assert codes & BOUNDED


def test_reasons_are_in_the_plan() -> None:
    simulator = Simulator(parse_scenario(SCENARIO, "loop"), seed=1)
    simulator.start()
    simulator.advance(5.0)
    now = declared(simulator.observe(), min_parallelism=5)
    found = [r for r in decide(named("even"), (), now).plan.reasons if r.code is ReasonCode.LEAST_INSTANCES]
    assert [(r.about, r.numbers["least"]) for r in found] == [("t/k", 5.0)]
