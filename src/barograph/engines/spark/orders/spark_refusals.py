"""Refusals of the Spark engine besides those of ``engines/check``: unsupported changes, and failed restarts. Pure."""

from collections.abc import Collection, Mapping

from barograph.model import MigrationMode, Plan, Refusal, RefusalCode


def unsupported(plan: Plan, limited: bool, unsupervised: Collection[str]) -> list[Refusal]:
    """Parts of the plan that this engine cannot do, whatever the cluster looks like.

    limited: whether it can limit the CPU of instances. unsupervised: running topologies that it cannot restart.
    """
    found = []
    if plan.limits_pct and not limited:
        why = "this engine was opened without control groups for limits"
        found.append(Refusal("CPU limits", RefusalCode.NO_LIMITS, why))
    named = {*plan.cuts, *(r.topology for r in plan.rescales), *(i.topology for i in plan.placement)}
    stuck = sorted(named.intersection(unsupervised))
    if plan.mode is MigrationMode.RESTART_APP:
        why = "an application cannot restart itself: use 'barograph run --migration restart-app'"
        found.append(Refusal(f"mode {plan.mode}", RefusalCode.MODE_IMPOSSIBLE, why))
    elif plan.mode in (MigrationMode.RESTART_QUERY, MigrationMode.WORKER) and stuck:
        why = f"{', '.join(stuck)} cannot be restarted here: start it with barograph.start"
        found.append(Refusal(f"mode {plan.mode}", RefusalCode.MODE_IMPOSSIBLE, why))
    return found


def failed_restarts(plan: Plan, problems: Mapping[str, str]) -> tuple[Refusal, ...]:
    """problems: topology (or "workers") -> why its restart failed, empty if it did not."""
    code = RefusalCode.MODE_IMPOSSIBLE
    return tuple(Refusal(f"{plan.mode} of {what}", code, why) for what, why in problems.items() if why)
