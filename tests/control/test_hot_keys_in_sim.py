"""Keys that make one instance hot, in the simulator: it gets more share, or a node of its own, and is named."""

import pytest

from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Simulator, run
from barograph.engines.sim.scenario.read import parse_scenario
from barograph.model import Cycle, Instance, Reason, ReasonCode
from barograph.policy.registry import named


def steered(
    rate: int, keys: int, skew: float, cpu_pct: int, instances: int, *, nodes: int = 4, seconds: int = 120,
    seed: int = 0, more: str = "", target: str = "",
) -> list[Cycle]:  # fmt: skip
    """Rows of a millisecond, counted by keys with this Zipf exponent. more: fields of the operator that counts."""
    text = f"""
        name = "keys"
        title = "keys"
        duration_s = {seconds}
        grain = "flows"
        cycle_s = 2
        epoch_s = 600
        [[nodes]]
        name = "node"
        count = {nodes}
        cpu_pct = {cpu_pct}
        [[topologies]]
        name = "t"
        {target}
        operators = [
            {{name = "source", parallelism = 1, load = "steps 0s={rate}", cost_ms = 0.02}},
            {{name = "count", parallelism = {instances}, cost_ms = 1, stateful = true{more}}},
        ]
        edges = [{{source = "source", target = "count", grouping = "fields", keys = {keys}, skew = {skew}}}]
    """
    decider = PolicyDecider(named("adaptive"), keep_all=True)
    run(Simulator(parse_scenario(text, "keys.toml"), seed), decider)
    return decider.cycles


def said(cycles: list[Cycle], code: ReasonCode) -> list[Reason]:
    return [r for c in cycles for r in c.plan.reasons if r.code is code]


def test_a_hot_instance_gets_more_share_and_a_node_of_its_own_and_is_named() -> None:
    """One key in 500 has two fifths of the rows: its instance needs about 45 % of a core, and a node has 60 %."""
    cycles = steered(rate=900, keys=500, skew=1.5, cpu_pct=60, instances=4)
    (hot,) = said(cycles, ReasonCode.HOT_INSTANCE)
    instance, last = Instance.parse(hot.about), cycles[-1]
    shares = last.demand.shares_by_instance()
    others = [share for i, share in shares.items() if i.operator == "count" and i != instance]
    assert shares[instance] > 2 * max(others)
    assert f"{hot.numbers['part']:.0%} of the rows of count go to it" in hot.why
    slots = last.snapshot.placement.slots
    beside = [i for i, slot in slots.items() if slot.node == slots[instance].node and i != instance]
    assert [i for i in beside if i.operator == "count"] == [], "its node has no room for another instance that counts"
    assert not said(cycles, ReasonCode.ONE_KEY_TOO_MUCH)


def test_one_key_that_is_too_much_is_said_once_and_no_more_instances_are_added() -> None:
    """One key has two fifths of 3,000 rows a second: 1.2 cores, and an instance can use one."""
    cycles = steered(rate=3000, keys=500, skew=1.5, cpu_pct=300, instances=4)
    (reason,) = said(cycles, ReasonCode.ONE_KEY_TOO_MUCH)
    assert reason.numbers["key_pct"] > 100 and "only the query can divide that key" in reason.why
    counts = [c.demand.operators[1].parallelism for c in cycles]
    at = next(k for k, c in enumerate(cycles) if reason in c.plan.reasons)
    assert counts[0] == 4 < counts[at] == counts[-1], "it was tried once, and not again"


def test_keys_that_share_an_instance_are_parted_by_more_instances() -> None:
    """Forty keys of equal weight: an instance that got more of them than others is relieved by more instances."""
    cycles = steered(rate=1200, keys=40, skew=0.0, cpu_pct=300, instances=2)
    assert not said(cycles, ReasonCode.ONE_KEY_TOO_MUCH)


def counts(cycles: list[Cycle]) -> list[int]:
    return [c.demand.operators[1].parallelism for c in cycles]


def alone(instance: Instance, cycle: Cycle) -> bool:
    slots = cycle.snapshot.placement.slots
    return [i for i, slot in slots.items() if slot.node == slots[instance].node] == [instance]


def test_every_hot_instance_is_named_and_gets_more_share() -> None:
    """The two keys with most rows have 15 and 7 % of them, and one of twelve instances gets 8 % of even rows."""
    cycles = steered(rate=4000, keys=500, skew=1.0, cpu_pct=100, instances=12, nodes=8)
    hot = said(cycles, ReasonCode.HOT_INSTANCE)
    assert len({r.about for r in hot}) == len(hot) >= 2, "each once"
    shares = cycles[-1].demand.shares_by_instance()
    mean = sum(cycles[-1].demand.operators[1].shares_pct) / 12
    assert all(shares[Instance.parse(r.about)] > 1.4 * mean for r in hot)


def test_keys_that_are_too_much_are_said_where_the_number_of_instances_cannot_change() -> None:
    for more in (', fixed_because = "its state cannot be split"', ", max_parallelism = 4"):
        cycles = steered(rate=3000, keys=500, skew=1.5, cpu_pct=300, instances=4, seconds=60, more=more)
        (reason,) = said(cycles, ReasonCode.ONE_KEY_TOO_MUCH)
        assert set(counts(cycles)) == {4}
        assert ("its state cannot be split" if "fixed" in more else "at most 4 instances") in reason.why


def test_a_key_that_stays_on_one_instance_does_not_multiply_the_others() -> None:
    """It uses most of a small node, and its instance is hot with any number. Each change is a pause, whose backlog is
    no reason for the next one."""
    cycles = steered(rate=900, keys=500, skew=1.5, cpu_pct=60, instances=4, seconds=150, seed=1)
    assert max(counts(cycles)) <= 8
    last = cycles[-1]
    assert last.snapshot.topology_metrics[0].backlog_rows < 10
    shares = {i: s for i, s in last.demand.shares_by_instance().items() if i.operator == "count"}
    hottest = max(shares, key=lambda i: shares[i])
    assert alone(hottest, last), "it needs all that a node has"
    assert said(cycles, ReasonCode.HOT_INSTANCE)[-1].about == str(hottest)


@pytest.mark.slow  # two seconds of the two minutes of unit tests; the one before it shows the same without a target
def test_a_target_does_not_multiply_instances_for_a_key_that_stays_on_one() -> None:
    for seed in range(3):
        cycles = steered(
            rate=900, keys=500, skew=1.5, cpu_pct=60, instances=4, seconds=150, seed=seed, target="target_p99_ms = 100"
        )
        missed = [r for c in cycles for r in c.demand.reasons if r.code is ReasonCode.TARGET_MISSED]
        assert any("one key has" in r.why for r in missed), "that is why more instances do not hold it"
        assert max(counts(cycles)) <= 12, seed
        assert counts(cycles)[-1] == counts(cycles)[-20], "it has come to rest"
        assert cycles[-1].snapshot.topology_metrics[0].backlog_rows < 10
