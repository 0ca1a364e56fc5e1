"""Refusals of the Spark engine besides those of ``engines/check``: unsupported changes, and failed restarts. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from barograph.model import MigrationMode, Plan, Refusal, RefusalCode


def enforceable(plan: Plan, no_limits_because: str) -> tuple[Plan, tuple[Refusal, ...]]:
    """The plan without what this engine cannot do, and what that is. Everything runs without limits too, so a plan is
    not refused for them. no_limits_because: why no executor limits the CPU of instances; empty if one does."""
    if not plan.limits_pct or not no_limits_because:
        return plan, ()
    return replace(plan, limits_pct={}), (Refusal("CPU limits", RefusalCode.NO_LIMITS, no_limits_because),)


def unsupported(plan: Plan, unsupervised: Collection[str]) -> list[Refusal]:
    """Parts of the plan that this engine cannot do, whatever the cluster looks like.

    unsupervised: running topologies that it cannot restart.
    """
    found = []
    named = {*plan.cuts, *(r.topology for r in plan.rescales), *(i.topology for i in plan.placement)}
    stuck = sorted(named.intersection(unsupervised))
    if plan.mode is MigrationMode.RESTART_APP:
        why = "an application cannot restart itself: use 'barograph run --migration restart-app'"
        found.append(Refusal(f"mode {plan.mode}", RefusalCode.MODE_IMPOSSIBLE, why))
    elif plan.mode in (MigrationMode.RESTART_QUERY, MigrationMode.WORKER) and stuck:
        why = f"{', '.join(stuck)} cannot be restarted here: start it with barograph.start"
        found.append(Refusal(f"mode {plan.mode}", RefusalCode.MODE_IMPOSSIBLE, why))
    return found


def failed_restarts(plan: Plan, problems: Mapping[str, str], together: Iterable[str] = ()) -> tuple[Refusal, ...]:
    """problems: topology (or "workers") -> why its restart failed, empty if it did not. together: topologies that are
    only changed if all restarts and the replacement of workers succeed."""
    code = RefusalCode.RESTART_FAILED
    why = {topology: reason for topology, reason in problems.items() if reason}
    if why and together:
        first, reason = next(iter(why.items()))
        why = {topology: problems.get(topology) or f"{first}: {reason}" for topology in together}
    return tuple(Refusal(f"{plan.mode} of {what}", code, reason, topology=what) for what, reason in why.items())
