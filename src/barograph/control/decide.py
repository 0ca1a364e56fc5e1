"""One cycle: from what was observed to a plan. It only decides; engines act on plans."""

from collections.abc import Sequence
from dataclasses import replace

from barograph.model import Allotment, Cycle, Demand, Forecast, Plan, Reason, ReasonCode, Snapshot
from barograph.policy.declared_bounds import bound_reasons, within_bounds
from barograph.policy.definition import Policy
from barograph.policy.together import scaled_together

# How much of the history a caller keeps, the larger of both: more than any stage looks back.
MEMORY_CYCLES = 120
MEMORY_S = 150.0
_VERDICTS = frozenset({ReasonCode.TARGET_HELD, ReasonCode.TARGET_MISSED, ReasonCode.TARGET_BLIND})


def decide(policy: Policy, history: Sequence[Cycle], now: Snapshot) -> Cycle:
    """One cycle. Pure: the same history and snapshot always give the same plan. The outcome is not known yet."""
    if not now.topologies or not now.nodes:  # a query is being restarted, or the cluster was lost
        why = "nothing to decide: " + ("no node is there" if now.topologies else "no topology runs")
        reason = Reason("cluster", ReasonCode.NOTHING_TO_DECIDE, why)
        return Cycle(now, Forecast(()), Demand(()), Allotment(), Plan(version=now.version, reasons=(reason,)))
    policy = scaled_together(within_bounds(policy, now), now)
    forecast = policy.forecaster(history, now, policy.horizon_cycles)
    demand = policy.scaler(history, now, forecast)
    allotment = policy.allotter(history, now, demand)
    places = policy.placer(history, now, demand, allotment)
    unplaced = tuple(Reason(r.what, ReasonCode.NOT_PLACED, r.reason) for r in places.unplaced)
    reasons = (*bound_reasons(demand), *_news(history, demand), *allotment.reasons, *places.reasons, *unplaced)
    plan = policy.migrator(history, now, demand, places.placement, reasons)
    plan = replace(
        plan,
        limits_pct=policy.limiter(history, now, demand, places.placement),
        rests=allotment.starved,
        heeds_triggers=policy.heeds_triggers,
    )
    return Cycle(now, forecast, demand, allotment, plan)


def _news(history: Sequence[Cycle], demand: Demand) -> tuple[Reason, ...]:
    """What the scaler says about topologies and instances, if it did not say the same in the cycle before. What it says
    of a target stands through cycles in which it says nothing of that, because no load is due."""
    said = {(r.about, r.code) for r in history[-1].demand.reasons} if history else set()
    fresh = tuple(r for r in demand.reasons if (r.about, r.code) not in said)
    return tuple(r for r in fresh if r.code not in _VERDICTS or r.code is not _last_verdict(history, r.about))


def _last_verdict(history: Sequence[Cycle], topology: str) -> ReasonCode | None:
    said = (r for cycle in reversed(history) for r in cycle.demand.reasons)
    return next((r.code for r in said if r.about == topology and r.code in _VERDICTS), None)


def decide_between(policy: Policy, history: Sequence[Cycle], now: Snapshot) -> Cycle:
    """Decide again at once, because a priority level has changed since the last cycle of the history.

    now: the cluster as it is, with the metrics of that cycle. That cycle is therefore left out of the history that
    stages see, except for its allotment: it says which nodes each topology has now, also where a second level changes
    before the next cycle.

    """
    *earlier, last = history
    if earlier:
        earlier[-1] = replace(earlier[-1], allotment=last.allotment)
    return decide(policy, earlier, now)
