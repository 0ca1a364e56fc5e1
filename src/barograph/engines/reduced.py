"""A plan without what it changes of some topologies. Pure; guards and engines leave topologies out in the same way."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from barograph.engines.check import rescaled
from barograph.model import Cycle, Instance, Placement, Plan, Snapshot


def without(plan: Plan, now: Snapshot, held: Iterable[str]) -> Plan:
    """The plan without moves, rescales and cuts of these topologies; their shares and limits fit present instances."""
    names = set(held)
    if not names:
        return plan
    kept = replace(
        plan,
        placement=Placement({i: s for i, s in plan.placement.slots.items() if i.topology not in names}),
        rescales=tuple(r for r in plan.rescales if r.topology not in names),
        cuts=tuple(c for c in plan.cuts if c not in names),
    )
    return with_fitting_cpu(plan, kept, now)


def applied_part(cycle: Cycle) -> Plan:
    """The plan without the topologies that the engine left out of it."""
    return cycle.plan if cycle.outcome is None else without(cycle.plan, cycle.snapshot, cycle.outcome.untouched)


def with_fitting_cpu(asked: Plan, kept: Plan, now: Snapshot) -> Plan:
    """The kept plan with the shares and limits that were asked for, fitted to the instances that there will be."""
    shares = _fitting(asked.shares_pct, asked, kept, now)
    return replace(kept, shares_pct=shares, limits_pct=_fitting(asked.limits_pct, asked, kept, now))


def _fitting(pct: Mapping[Instance, float], asked: Plan, kept: Plan, now: Snapshot) -> Mapping[Instance, float]:
    """An operator whose rescale was dropped gets the same CPU in total, spread over the instances it keeps."""
    after = {t.name: rescaled(t, kept) for t in now.topologies}
    asked_for = {t.name: rescaled(t, asked) for t in now.topologies}
    shares: dict[Instance, float] = {}
    totals: dict[tuple[str, str], float] = {}
    for instance, share in pct.items():
        key = (instance.topology, instance.operator)
        totals[key] = totals.get(key, 0.0) + share
        shares[instance] = share
    for (topology, operator), total in totals.items():
        if topology not in after or not after[topology].has(operator):
            continue
        count = after[topology].operator(operator).parallelism
        if count != asked_for[topology].operator(operator).parallelism:
            for instance in [i for i in shares if (i.topology, i.operator) == (topology, operator)]:
                del shares[instance]
            shares.update({Instance(topology, operator, index): total / count for index in range(count)})
    return {i: min(s, _most_pct(i, kept, now)) for i, s in shares.items()}


def _most_pct(instance: Instance, plan: Plan, now: Snapshot) -> float:
    slot = plan.placement.get(instance) or now.placement.get(instance)
    known = {n.name: n.cpu_pct for n in now.nodes}
    return 100.0 if slot is None else min(100.0, known.get(slot.node, 100.0))
