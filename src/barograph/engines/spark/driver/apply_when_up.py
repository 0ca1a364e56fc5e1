"""Applies a plan to supervised queries, which may die at any moment: a restart is waited for and not a refusal.

It decides nothing of the plan, and restarts nothing.
"""

import time
from collections.abc import Callable, Collection
from typing import Protocol

from barograph.model import Outcome, Plan, RefusalCode

_LOOK_S = 0.05


class RestartedQuery(Protocol):
    """isActive: whether it runs or is being restarted."""

    @property
    def topology(self) -> str: ...

    @property
    def isActive(self) -> bool: ...  # noqa: N802  # Spark's name

    def await_up(self, timeout_s: float) -> bool: ...


def topologies_of(plan: Plan) -> set[str]:
    """Every topology that must run for the plan to be possible."""
    instances = (*plan.placement, *plan.shares_pct, *plan.limits_pct)
    return {*plan.cuts, *(r.topology for r in plan.rescales), *(i.topology for i in instances)}


def apply_when_up(
    apply: Callable[[Plan], Outcome],
    plan: Plan,
    queries: Collection[RestartedQuery],
    timeout_s: float,
    now: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] = time.sleep,
) -> Outcome:
    """Wait until each of the queries that the plan names is up, and apply it. A query that dies between the two is
    unknown to the engine for a moment; the plan is then applied again, until the timeout."""
    named, deadline = topologies_of(plan), now() + timeout_s
    mine = [q for q in queries if q.topology in named]
    all_supervised = named <= {q.topology for q in mine}
    while True:
        for query in mine:
            query.await_up(max(0.0, deadline - now()))
        outcome = apply(plan)
        missing = any(r.code is RefusalCode.NO_SUCH_TOPOLOGY for r in outcome.refused)
        if not (missing and all_supervised and all(q.isActive for q in mine)) or now() >= deadline:
            return outcome
        # Its death may not have been noticed yet: then it still counts as up.
        wait(_LOOK_S)
