"""What a run begins with: the first decision of the policy that steers it. Pure.

The policy sees the topology on an empty cluster, without placement and metrics, as in the simulator, so a run never
begins from another policy's placement. Where no policy steers, ``even`` places the instances.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from barograph.control.decide import decide
from barograph.engines.check import refusals, rescaled
from barograph.engines.sim.closed_loop import submitted
from barograph.model import Placement, Plan, ReasonCode, Snapshot, Topology
from barograph.policy.definition import Policy
from barograph.policy.registry import named

UNSTEERED = "even"


@dataclass(frozen=True)
class First:
    """by: the policy that decided. parallelism: instances of every operator. placement: of the instances it placed.

    then: what can only be ordered once the query runs: shares, limits and rests. said: sentences about what differs
    from the policy's decision. why: the reasons of the decision.
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
    """seen: the cluster with its workers; other topologies on it are ignored.

    policy: None where no policy steers; then only the placement is taken from ``even``. enforce: whether limits are
    enforced; if not, shares only influence the placement.
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
        said = f"the first decision of {chosen.name} is refused: {reason}. Spark places every instance"
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
    """A sentence that names the instances that the policy did not place, if there are any."""
    left = [f"{i.operator}/{i.index}" for i in topology.instances() if i not in plan.placement]
    if not left:
        return ()
    reasons = dict.fromkeys(r.why for r in plan.reasons if r.code is ReasonCode.NOT_PLACED)
    because = f" ({'; '.join(reasons)})" if reasons else ""
    return (f"{policy} does not place {', '.join(left)}{because}: Spark places them",)
