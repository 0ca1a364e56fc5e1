"""The size of a query that has more instances than there are seats, as the driver's policy would place it. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from barograph.config import Config
from barograph.control.attach import controller_fields
from barograph.control.decide import decide
from barograph.engines.check import refusals, rescaled
from barograph.engines.spark.query.start.first_size import SizeChoice
from barograph.model import Placement, Snapshot, Topology
from barograph.policy.definition import Policy, with_options
from barograph.policy.registry import named


def choice_by(config: Config, policy_options: Mapping[str, object]) -> SizeChoice:
    """Of the configuration's policy; nothing is asked where there is none."""
    if config["policy"] is None:
        return SizeChoice()
    fields = controller_fields(config, policy_options)
    policy = with_options(named(fields["policy"]), fields["options"])
    return SizeChoice(policy=policy.name, asked=lambda topology, seen: size_by(policy, topology, seen))


def size_by(policy: Policy, topology: Topology, seen: Snapshot) -> dict[str, int] | None:
    """Instances by operator in the policy's first decision of the topology, beside those that run; None if it does not
    place each of them."""
    others = tuple(t for t in seen.topologies if t.name != topology.name)
    running = {i: s for i, s in seen.placement.slots.items() if i.topology != topology.name}
    now = replace(seen, topologies=(*others, topology), placement=Placement(running))
    plan = decide(policy, (), now).plan
    begun = rescaled(topology, plan)
    if refusals(plan, now) or any(i not in plan.placement for i in begun.instances()):
        return None
    return {o.name: o.parallelism for o in begun.operators}
