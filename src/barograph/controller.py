"""The cycle: what was seen becomes a plan. Only engines touch the world; this only decides."""

from collections.abc import Sequence
from dataclasses import replace

from barograph.model import Allotment, Cycle, Demand, Forecast, Plan, Reason, Snapshot
from barograph.policies import Policy

NOT_PLACED = "not placed: "
"""How a plan's reason begins that is about an instance without a place."""


def decide(policy: Policy, history: Sequence[Cycle], now: Snapshot) -> Cycle:
    """One turn, pure: the same history and snapshot always give the same plan. The outcome is not known yet."""
    if not now.topologies or not now.nodes:  # a query between two lives, a cluster that is just being lost
        why = Reason("cluster", "nothing to decide: " + ("no node is there" if now.topologies else "no topology runs"))
        return Cycle(now, Forecast(()), Demand(()), Allotment(), Plan(version=now.version, reasons=(why,)))
    forecast = policy.forecaster(history, now, policy.horizon_cycles)
    demand = policy.scaler(history, now, forecast)
    allotment = policy.allotter(history, now, demand)
    places = policy.placer(history, now, demand, allotment)
    unplaced = tuple(Reason(refusal.what, f"{NOT_PLACED}{refusal.reason}") for refusal in places.unplaced)
    plan = policy.migrator(history, now, demand, places.placement, (*allotment.reasons, *places.reasons, *unplaced))
    plan = replace(plan, rests=allotment.starved, heeds_triggers=policy.heeds_triggers)
    return Cycle(now, forecast, demand, allotment, plan)


def decide_between(policy: Policy, history: Sequence[Cycle], now: Snapshot) -> Cycle:
    """A level has changed since the last cycle of the history: decide anew, and not at the next one.

    now: the world as it is, with the metrics of that cycle. So the cycle is left out of what the stages look back to,
    but for what it allotted: nodes are kept by what holds now, also where a second level changes in the same cycle.
    """
    *earlier, last = history
    if earlier:
        earlier[-1] = replace(earlier[-1], allotment=last.allotment)
    return decide(policy, earlier, now)
