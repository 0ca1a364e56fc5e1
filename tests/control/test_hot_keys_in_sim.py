"""Keys that make one instance hot, in the simulator: it gets more share, or a node of its own, and is named."""

from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Simulator, run
from barograph.engines.sim.scenario.read import parse_scenario
from barograph.model import Cycle, Instance, Reason, ReasonCode
from barograph.policy.registry import named


def steered(rate: int, keys: int, skew: float, cpu_pct: int, instances: int, seconds: int = 120) -> list[Cycle]:
    """Rows of a millisecond, counted by keys with this Zipf exponent."""
    text = f"""
        name = "keys"
        title = "keys"
        duration_s = {seconds}
        grain = "flows"
        cycle_s = 2
        epoch_s = 600
        [[nodes]]
        name = "node"
        count = 4
        cpu_pct = {cpu_pct}
        [[topologies]]
        name = "t"
        operators = [
            {{name = "source", parallelism = 1, load = "steps 0s={rate}", cost_ms = 0.02}},
            {{name = "count", parallelism = {instances}, cost_ms = 1, stateful = true}},
        ]
        edges = [{{source = "source", target = "count", grouping = "fields", keys = {keys}, skew = {skew}}}]
    """
    decider = PolicyDecider(named("adaptive"), keep_all=True)
    run(Simulator(parse_scenario(text, "keys.toml"), 0), decider)
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
