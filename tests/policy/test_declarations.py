"""What is said to have an effect under a policy has one, and what is said to have none has none."""

from dataclasses import replace

import pytest
from tests.cycles import WORD_COUNT, seen, work

from barograph.control.decide import decide
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import Cycle, Instance, Latency, Node, Placement, Slot, Topology, TopologyMetrics
from barograph.policy.declarations import CPU, ISOLATE, MEMORY, TARGET, WORKERS, declared, used_by, without_effect
from barograph.policy.registry import POLICIES

OTHER = replace(WORD_COUNT, name="other")
CLUSTER = tuple(Node(f"n{i}", 600.0, 2, 8, 2048.0) for i in range(4))
SPREAD = Placement(
    {
        Instance(t.name, o.name, i): Slot(f"n{i % 4}", i % 2)
        for t in (WORD_COUNT, OTHER)
        for o in t.operators
        for i in range(o.parallelism)
    }
)


def declaring(option: str) -> Topology:
    if option == WORKERS:
        return replace(WORD_COUNT, workers=1)
    if option == ISOLATE:
        return replace(WORD_COUNT, isolate_nodes=1)
    if option == TARGET:
        return replace(WORD_COUNT, target_p99_ms=1000.0)
    field = {CPU: {"cpu_pct": 70.0}, MEMORY: {"memory_mb": 600.0}}[option]
    return replace(WORD_COUNT, operators=tuple(replace(o, **field) for o in WORD_COUNT.operators))  # type: ignore[arg-type]


def decided(policy: str, topology: Topology, is_running: bool) -> list[object]:
    """What is decided in six cycles, of a first placement or of topologies that run, with latencies."""
    numbers = {"spout": work(1000), "split": work(1000, 900, out=5, ms=4), "count": work(4500, out=0, ms=2)}
    mine, found, history = numbers if is_running else {}, list[object](), list[Cycle]()
    latency = TopologyMetrics("wc", completed_rows=4500.0, latency_due=Latency(5.0, 4.0, 20.0, 20.0, 20.0))
    for k in range(6):
        now = seen(
            [topology, OTHER], {"wc": mine, "other": mine}, cluster=CLUSTER, at_s=10.0 * k, seats=8,
            placement=SPREAD if is_running else None,
        )  # fmt: skip
        now = replace(now, shared_workers=True, topology_metrics=(latency,) if is_running else ())
        history.append(cycle := decide(POLICIES[policy], history, now))
        plan = cycle.plan
        found.append((plan.placement, plan.limits_pct, plan.shares_pct, plan.rescales, cycle.allotment.nodes))
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_uses_exactly_what_it_is_said_to_use(policy: str) -> None:
    plain = [decided(policy, WORD_COUNT, is_running) for is_running in (False, True)]
    found = set[str]()
    for option in (WORKERS, ISOLATE, CPU, MEMORY, TARGET):
        topology = declaring(option)
        assert declared(topology) == {option}
        if [decided(policy, topology, is_running) for is_running in (False, True)] != plain:
            found.add(option)
    assert frozenset(found) == used_by(policy)


def test_one_sentence_names_the_option_the_policy_and_those_that_use_it() -> None:
    assert without_effect("adaptive", [CPU, ISOLATE]) == [
        "query.isolate-nodes has no effect under the policy adaptive; it is for isolation"
    ]
    assert without_effect("of-a-package", [ISOLATE]) == []


def test_a_target_that_nothing_follows_is_named() -> None:
    assert QueryOptions(target_p99_ms=100.0).declared() == [TARGET]
    assert without_effect("adaptive", [TARGET]) == []
    assert without_effect("true-rate", [TARGET]) == [
        "query.target-p99 has no effect under the policy true-rate; it is for adaptive"
    ]
    assert without_effect(None, [TARGET, WORKERS]) == [
        "query.target-p99 has no effect without a policy; it is for adaptive"
    ]
    assert without_effect(None, [WORKERS]) == []
