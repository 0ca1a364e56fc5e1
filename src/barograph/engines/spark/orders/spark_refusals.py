"""What the Spark engine refuses or leaves out besides what ``engines/check`` refuses: changes that it cannot make, and
restarts that failed. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from barograph.engines.reduced import without
from barograph.engines.spark.orders.plan_orders import change_of
from barograph.model import MigrationMode, Plan, Refusal, RefusalCode, Snapshot

_HERE = "cannot be restarted here: start it with barograph.start"


def enforceable(plan: Plan, no_limits_because: str) -> tuple[Plan, tuple[Refusal, ...]]:
    """The plan without what this engine cannot do, and what that is. Everything runs without limits too, so a plan is
    not refused for them. no_limits_because: why no executor limits the CPU of instances; empty if one does."""
    if not plan.limits_pct or not no_limits_because:
        return plan, ()
    return replace(plan, limits_pct={}), (Refusal("CPU limits", RefusalCode.NO_LIMITS, no_limits_because),)


def restartable_part(plan: Plan, now: Snapshot, unsupervised: Collection[str]) -> tuple[Plan, tuple[Refusal, ...]]:
    """The plan without topologies that would have to be restarted and cannot be, and which these are.

    unsupervised: running topologies that this engine cannot restart. Where workers are replaced, one of these that only
    sits on such a worker would end for good: what needs the worker to be replaced is left out for it.
    """
    if plan.mode not in (MigrationMode.RESTART_QUERY, MigrationMode.WORKER) or not unsupervised:
        return plan, ()
    changes = {t.name: change for t in now.topologies if (change := change_of(t, plan, now)) or t.name in plan.cuts}
    found = {name: f"{name} {_HERE}" for name in changes if name in unsupervised}
    if plan.mode is MigrationMode.WORKER:
        kept = {slot: i.topology for i, slot in now.placement.slots.items() if i.topology in unsupervised}
        for name, change in changes.items():
            ended = sorted(change.slots & kept.keys()) if change else []
            if ended and name not in found:
                found[name] = f"it replaces worker {ended[0]}, and {kept[ended[0]]} there {_HERE}"
    left_out = tuple(
        Refusal(f"changes of {name} in mode {plan.mode}", RefusalCode.MODE_IMPOSSIBLE, why, topology=name)
        for name, why in found.items()
    )
    return without(plan, now, found), left_out


def impossible(plan: Plan, left_out: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    """What must be refused whatever the cluster looks like. left_out: what the plan had besides."""
    if plan.mode is MigrationMode.RESTART_APP:
        why = "an application cannot restart itself: use 'barograph run --migration restart-app'"
        return (Refusal(f"mode {plan.mode}", RefusalCode.MODE_IMPOSSIBLE, why),)
    asks = plan.placement or plan.rescales or plan.cuts or plan.shares_pct or plan.limits_pct
    return () if asks or plan.rests is not None else left_out


def failed_restarts(plan: Plan, problems: Mapping[str, str], together: Iterable[str] = ()) -> tuple[Refusal, ...]:
    """problems: topology (or "workers") -> why its restart failed, empty if it did not. together: topologies that are
    only changed if all restarts and the replacement of workers succeed."""
    code = RefusalCode.RESTART_FAILED
    why = {topology: reason for topology, reason in problems.items() if reason}
    if why and together:
        first, reason = next(iter(why.items()))
        why = {topology: problems.get(topology) or f"{first}: {reason}" for topology in together}
    return tuple(Refusal(f"{plan.mode} of {what}", code, reason, topology=what) for what, reason in why.items())
