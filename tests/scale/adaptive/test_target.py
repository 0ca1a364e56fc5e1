"""A target for the p99: the least CPU that holds it, what it costs, and when it cannot be held."""

from dataclasses import replace

import pytest
from tests.cycles import chain, nodes, remembered, seen, work

from barograph.forecast import BestOf
from barograph.model import Cycle, Demand, Latency, Node, Operator, Plan, Reason, ReasonCode, Snapshot, TopologyMetrics
from barograph.scale import Adaptive
from barograph.scale.adaptive import scaler as scaler_module
from barograph.scale.adaptive.reserve import nodes_for

STRICT = Adaptive(lend=False, theta_pct=1.0)


def cycles(
    target_ms: float | None,
    p99_ms: float | None = 20.0,
    *,
    cluster: tuple[Node, ...] | None = None,
    quota: float | None = None,
    epoch_cycles: int = 1000,
    rows: float = 1000.0,
) -> list[Snapshot]:
    topology = chain(Operator("s", 1, source=True), Operator("a", 2))
    topology = replace(topology, target_p99_ms=target_ms, quota_cpu_pct=quota)
    found = []
    for k in range(20):
        numbers = {"s": work(rows, ms=0.2), "a": work(rows, ms=1.0)}
        latency = None if p99_ms is None else Latency(p99_ms / 3, p99_ms / 4, p99_ms, p99_ms, p99_ms)
        metrics = TopologyMetrics("t", epoch=k // epoch_cycles, completed_rows=1000.0, latency_due=latency)
        now = seen(topology, numbers, cluster=cluster, cycle_s=2.0, at_s=2.0 * k)
        found.append(replace(now, topology_metrics=(metrics,)))
    return found


def decided(snapshots: list[Snapshot], scaler: Adaptive = STRICT) -> tuple[Demand, list[Reason]]:
    """The last demand, and all reasons of the run."""
    history: list[Cycle] = []
    said: list[Reason] = []
    for now in snapshots:
        demand = scaler(history, now, BestOf()(history, now, 1))
        history.append(remembered(now, demand))
        said += demand.reasons
    return demand, said


def shares(demand: Demand) -> float:
    return sum(sum(o.shares_pct) for o in demand.operators)


def test_a_shorter_target_buys_more_cpu_and_the_reason_says_how_much() -> None:
    plain = shares(decided(cycles(None))[0])
    bought = {}
    for target in (25.0, 50.0, 1000.0):
        demand, said = decided(cycles(target))
        assert said[-1].code is ReasonCode.TARGET_HELD, said[-1]
        numbers = said[-1].numbers
        assert numbers["forecast_p99_ms"] <= target == numbers["target_p99_ms"]
        assert numbers["share_pct"] == pytest.approx(shares(demand))
        assert numbers["bought_pct"] == pytest.approx(shares(demand) - plain)
        bought[target] = numbers["bought_pct"]
    assert bought[25.0] > bought[50.0] > bought[1000.0]
    assert bought[1000.0] < 0 < bought[25.0], "a long target needs less headroom than no target"


def test_the_reason_says_what_the_target_costs_in_nodes() -> None:
    small = nodes(6, 60.0)
    for target in (35.0, 200.0):
        demand, said = decided(cycles(target, cluster=small))
        plain, _ = decided(cycles(None, cluster=small))
        assert said[-1].code is ReasonCode.TARGET_HELD, said[-1]
        now = cycles(target, cluster=small)[-1]
        taken, usual = nodes_for(demand.operators, now), nodes_for(plain.operators, now)
        assert (said[-1].numbers["nodes"], said[-1].numbers["bought_nodes"]) == (taken, taken - usual)
        more = f"{taken - usual} more than" if taken > usual else "as many as"
        assert said[-1].why.endswith(f"which fits on {taken} nodes, {more} without it")
        assert (taken > usual) == (target == 35.0)


def test_what_rows_take_without_any_queue_cannot_be_bought_away() -> None:
    """Rows take 400 ms whatever the load: little CPU is spent on a target of 100 ms."""
    demand, said = decided(cycles(100.0, 400.0))
    assert said[-1].code is ReasonCode.TARGET_MISSED
    assert "cannot be held" in said[-1].why and said[-1].numbers["forecast_p99_ms"] > 100.0
    assert shares(demand) < 3 * shares(decided(cycles(None, 400.0))[0])


def test_where_limits_are_above_shares_a_row_is_executed_at_its_limit() -> None:
    """A row of 1 ms takes 20 ms at a share of 5 %, and 1 ms if its instance may borrow the rest of a core."""
    history: list[Cycle] = []
    lending = Adaptive(lend=True)
    for now in cycles(25.0, 12.0, rows=60.0):
        demand = lending(history, now, BestOf()(history, now, 1))
        limits = dict.fromkeys(demand.shares_by_instance(), 100.0)
        history.append(remembered(now, demand, plan=Plan(limits_pct=limits)))
    assert demand.reasons[-1].code is ReasonCode.TARGET_HELD, demand.reasons
    strict, _ = decided(cycles(25.0, 12.0, rows=60.0))
    assert shares(demand) < shares(strict)


def test_a_quota_may_stand_against_it() -> None:
    assert decided(cycles(25.0))[1][-1].code is ReasonCode.TARGET_HELD
    said = decided(cycles(25.0, quota=61.0))[1][-1]
    assert said.code is ReasonCode.TARGET_MISSED
    assert "its quota is 61 %" in said.why and "more CPU brings little" not in said.why


def test_a_quota_is_not_blamed_where_more_cpu_would_not_help() -> None:
    """Rows take 400 ms whatever the load."""
    said = decided(cycles(100.0, 400.0, quota=100.0))[1][-1]
    assert said.code is ReasonCode.TARGET_MISSED
    assert "more CPU brings little" in said.why and "quota" not in said.why


def test_a_small_cluster_may_stand_against_it() -> None:
    for cluster, why in ((nodes(2, 35.0), "no instance may have more than 35 %"), (nodes(1, 70.0), "have no room for")):
        said = decided(cycles(25.0, cluster=cluster))[1][-1]
        assert said.code is ReasonCode.TARGET_MISSED
        assert why in said.why and "more CPU brings little" not in said.why


def test_a_share_at_its_limit_needs_more_instances() -> None:
    """Two instances at 90 % of a core each: no share shortens their queues."""
    demand, _ = decided(cycles(30.0, 60.0, rows=3600.0))
    found = demand.of("t", "a")
    assert found is not None and found.wanted > 2
    without, _ = decided(cycles(1000.0, 60.0, rows=2400.0))
    found = without.of("t", "a")
    assert found is not None and found.wanted == 2


def test_epochs_that_end_often_stand_against_a_target_below_their_pause() -> None:
    _, said = decided(cycles(200.0, epoch_cycles=5))
    assert said[-1].code is ReasonCode.TARGET_MISSED and "an epoch ends every" in said[-1].why
    _, said = decided(cycles(1000.0, epoch_cycles=5))
    assert said[-1].code is ReasonCode.TARGET_HELD


def test_without_latency_the_target_is_not_followed_and_that_is_said() -> None:
    plain, _ = decided(cycles(None, None))
    demand, said = decided(cycles(50.0, None))
    assert demand.operators == plain.operators
    assert {r.code for r in said} == {ReasonCode.TARGET_BLIND}
    assert "latency.column" in said[0].why


@pytest.mark.parametrize("epoch_cycles", [1, 2, 3])
def test_without_a_cycle_between_two_pauses_the_target_is_not_followed_and_that_is_said(epoch_cycles: int) -> None:
    _, said = decided(cycles(50.0, epoch_cycles=epoch_cycles))
    assert {r.code for r in said} == {ReasonCode.TARGET_BLIND}
    assert "an epoch ends every" in said[-1].why


def test_an_operator_without_rows_is_named_as_the_reason_why_the_target_is_not_followed() -> None:
    snapshots = []
    for now in cycles(50.0):
        numbers = {"s": work(1000.0, ms=0.2), "a": work(0.0, ms=1.0)}
        idle = seen(now.topologies[0], numbers, cycle_s=2.0, at_s=now.at_s)
        snapshots.append(replace(idle, topology_metrics=now.topology_metrics))
    _, said = decided(snapshots)
    assert [r.code for r in said[-1:]] == [ReasonCode.TARGET_BLIND]
    assert "what a row costs at a is not known" in said[-1].why


def test_a_query_that_rests_is_not_said_to_be_without_latency() -> None:
    snapshots = cycles(1000.0)
    rest = seen(snapshots[0].topologies[0], {"s": work(0.0, ms=0.2), "a": work(0.0, ms=1.0)}, cycle_s=2.0)
    for k in range(20, 80):
        snapshots.append(replace(rest, at_s=2.0 * k, topology_metrics=(TopologyMetrics("t"),)))
    _, said = decided(snapshots)
    assert ReasonCode.TARGET_HELD in {r.code for r in said}
    assert ReasonCode.TARGET_BLIND not in {r.code for r in said}


def followed_by(snapshots: list[Snapshot], rows: float, count: int) -> list[Snapshot]:
    """The same query goes on with so many rows a cycle."""
    last = snapshots[-1]
    numbers = {"s": work(rows, ms=0.2), "a": work(rows, ms=1.0)}
    latency = last.topology_metrics[0].latency_due if rows else None
    metrics = (replace(last.topology_metrics[0], completed_rows=rows, latency_due=latency),)
    more = [seen(last.topologies[0], numbers, cycle_s=2.0, at_s=last.at_s + 2.0 * (k + 1)) for k in range(count)]
    return [*snapshots, *(replace(now, topology_metrics=metrics) for now in more)]


@pytest.mark.parametrize("rows", [1000.0, pytest.param(100.0, marks=pytest.mark.slow)])  # half a second each
@pytest.mark.parametrize("target", [50.0, pytest.param(200.0, marks=pytest.mark.slow), 1000.0])
@pytest.mark.parametrize("part", [0.0, 0.03])
def test_a_load_that_has_gone_is_not_judged(rows: float, target: float, part: float) -> None:
    """The error of the forecasts after a stop is no load: for twelve cycles it claimed a sixth of what had gone."""
    ran = cycles(target, rows=rows)
    _, said = decided(followed_by(ran, part * rows, 15))
    assert {r.code for r in said} == {ReasonCode.TARGET_HELD}
    judged = len(decided(ran)[1])
    assert len(said) == judged + (3 if part else 0), "no verdict until that error is forgotten, nor without any row"


def test_no_cpu_is_bought_for_a_load_that_has_gone() -> None:
    resting = followed_by(cycles(50.0), 0.0, 5)
    demand, _ = decided(resting)
    plain, _ = decided(followed_by(cycles(None), 0.0, 5))
    assert shares(demand) <= shares(plain)


def test_a_rise_after_a_rest_is_judged_again() -> None:
    """Under a quota that is too small."""
    ran = cycles(25.0, quota=61.0)
    rested = followed_by(ran, 0.0, 5)
    before, at_rest, after = (decided(run)[1] for run in (ran, rested, followed_by(rested, 1000.0, 1)))
    assert before[-1].code is ReasonCode.TARGET_MISSED and at_rest == before
    assert after[-1].code is ReasonCode.TARGET_MISSED and len(after) == len(before) + 1


def test_few_rows_get_the_share_that_is_counted_on_for_them() -> None:
    """At a share of 1 % a row of 1 ms takes 100 ms, and more CPU does help."""
    demand, said = decided(cycles(50.0, rows=3.0))
    assert {r.code for r in said} == {ReasonCode.TARGET_HELD}
    found = demand.of("t", "a")
    assert found is not None and min(found.shares_pct) > 2.0


def test_without_a_target_nothing_is_computed_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("aim_for", "with_rise", "cost_of", "target_reason"):
        monkeypatch.setattr(scaler_module, name, lambda *_: pytest.fail("no topology has a target"))
    demand, said = decided(cycles(None))
    assert not said and not demand.reasons
