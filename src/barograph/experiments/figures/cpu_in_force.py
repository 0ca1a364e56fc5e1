"""Guaranteed CPU and CPU limits at a moment of a run. Pure.

The simulator counts in the same way. An instance without a limit may use a core, or its whole node if that is smaller.
For an instance without a share, its limit counts as guaranteed. The instances of a node together never count
as more than the node has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barograph.engines.reduced import applied_part
from barograph.model import Cycle, Instance, Placement, Plan, Snapshot

CORE_PCT = 100.0


@dataclass(frozen=True, slots=True)
class CpuInForce:
    """Guaranteed shares and limits, in per cent of a core, of the instances that have any."""

    shares_pct: Mapping[Instance, float] = field(default_factory=dict)
    limits_pct: Mapping[Instance, float] = field(default_factory=dict)

    def with_plan(self, plan: Plan) -> "CpuInForce":
        """Instances that the plan does not name keep what they have."""
        return CpuInForce({**self.shares_pct, **plan.shares_pct}, {**self.limits_pct, **plan.limits_pct})

    def after(self, cycle: Cycle) -> "CpuInForce":
        """A plan that was refused or only recorded changes nothing."""
        return self.with_plan(applied_part(cycle)) if cycle.outcome is not None and cycle.outcome.ok else self


@dataclass(frozen=True, slots=True)
class Cpu:
    """Per cent of a core. limited: whether every instance in it has a limit."""

    reserved_pct: float = 0.0
    limit_pct: float = 0.0
    limited: bool = True


def in_all(now: Snapshot, placement: Placement, held: CpuInForce) -> Cpu:
    """Of all placed instances together."""
    given = {n.name: n.cpu_pct for n in now.nodes}
    reserved: dict[str, float] = {}
    limit: dict[str, float] = {}
    for instance, slot in placement.slots.items():
        one = of_instance(instance, given.get(slot.node, CORE_PCT), held)
        reserved[slot.node] = reserved.get(slot.node, 0.0) + one.reserved_pct
        limit[slot.node] = limit.get(slot.node, 0.0) + one.limit_pct
    return Cpu(_within(reserved, given), _within(limit, given))


def _within(by_node: Mapping[str, float], given: Mapping[str, float]) -> float:
    return sum(min(pct, given.get(node, pct)) for node, pct in by_node.items())


def of_operator(now: Snapshot, placement: Placement, held: CpuInForce, topology: str, operator: str) -> Cpu:
    """Of the placed instances of one operator, without regard to other instances on the same nodes."""
    given = {n.name: n.cpu_pct for n in now.nodes}
    mine = [(i, s) for i, s in placement.slots.items() if (i.topology, i.operator) == (topology, operator)]
    parts = [of_instance(i, given.get(slot.node, CORE_PCT), held) for i, slot in mine]
    limited = bool(parts) and all(p.limited for p in parts)
    return Cpu(sum(p.reserved_pct for p in parts), sum(p.limit_pct for p in parts), limited)


def of_instance(instance: Instance, node_pct: float, held: CpuInForce) -> Cpu:
    most = min(CORE_PCT, node_pct)
    limit = held.limits_pct.get(instance)
    may_use = most if limit is None else min(limit, most)
    share = held.shares_pct.get(instance)
    return Cpu(may_use if share is None else min(share, most), may_use, limit is not None)
