"""What a run begins with: the first decision of the policy that steers it, made from nothing. Pure.

The policy sees the coming topology on an empty cluster: no placement, no metrics. That is what the simulator shows it
too, so a run never begins from another policy's placement. Where no policy steers, instances are dealt evenly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from barograph.controller import NOT_PLACED, decide
from barograph.engines.check import refusals, rescaled
from barograph.engines.sim.closed_loop import submitted
from barograph.model import Placement, Plan, Snapshot, Topology
from barograph.policies import Policy, named

UNSTEERED = "even"


@dataclass(frozen=True)
class First:
    """by: the policy that decided. parallelism: instances of every operator. placement: of the instances it placed.

    then: what can only be ordered once the query runs: shares, limits and rests. said: what is not as the policy
    decided, in one sentence each. why: the reasons of the decision.
    """

    by: str
    parallelism: Mapping[str, int]
    placement: Placement
    then: Plan = field(default_factory=Plan)
    said: tuple[str, ...] = ()
    why: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "by": self.by,
            "parallelism": dict(self.parallelism),
            "placement": {f"{i.operator}/{i.index}": str(s) for i, s in sorted(self.placement.slots.items())},
            "why": list(self.why),
        }


def first_decision(policy: Policy | None, seen: Snapshot, topology: Topology, enforce: bool = True) -> First:
    """seen: the cluster with its workers; what else runs there is not looked at.

    policy: None where no policy steers: then nothing but the placement is taken from ``even``. enforce: whether limits
    are held; else shares only decide the placement.
    """
    chosen = named(UNSTEERED) if policy is None else policy
    now = submitted(replace(seen, topologies=(topology,)))
    plan = decide(chosen, (), now).plan
    if policy is None:
        plan = replace(plan, shares_pct={}, limits_pct={})
    elif not enforce:
        plan = replace(plan, limits_pct={})
    why = tuple(f"{r.about}: {r.why}" for r in plan.reasons)
    wrong = refusals(plan, now)
    if wrong:
        reason = "; ".join(f"{r.what}: {r.reason}" for r in wrong)
        said = f"the first decision of {chosen.name} cannot be: {reason}. Spark's offers place every instance"
        return First(chosen.name, _degrees(topology), Placement(), said=(said,), why=why)
    begun = rescaled(topology, plan)
    return First(
        chosen.name, _degrees(begun), plan.placement,
        Plan(shares_pct=plan.shares_pct, limits_pct=plan.limits_pct, rests=plan.rests),
        _left_open(chosen.name, begun, plan), why,
    )  # fmt: skip


def _degrees(topology: Topology) -> dict[str, int]:
    return {o.name: o.parallelism for o in topology.operators}


def _left_open(policy: str, topology: Topology, plan: Plan) -> tuple[str, ...]:
    """One sentence on the instances that the policy did not place, if there are any."""
    left = [f"{i.operator}/{i.index}" for i in topology.instances() if i not in plan.placement]
    if not left:
        return ()
    reasons = dict.fromkeys(r.why.removeprefix(NOT_PLACED) for r in plan.reasons if r.why.startswith(NOT_PLACED))
    because = f" ({'; '.join(reasons)})" if reasons else ""
    return (f"{policy} does not place {', '.join(left)}{because}: Spark's offers do",)
