"""CPU that is in force at a moment of a run: what is guaranteed, and the most that may be used. Pure.

The simulator counts the same way. An instance without a limit may use what one instance can: a core, or its node if
that is smaller. One without a share has been given all that it may use. A node never gives more than it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barograph.model import Cycle, Instance, Placement, Plan, Snapshot

CORE_PCT = 100.0


@dataclass(frozen=True, slots=True)
class Held:
    """Guaranteed shares and limits, in per cent of a core, of the instances that have any."""

    shares_pct: Mapping[Instance, float] = field(default_factory=dict)
    limits_pct: Mapping[Instance, float] = field(default_factory=dict)

    def with_plan(self, plan: Plan) -> "Held":
        """What a plan does not name stays as it is."""
        return Held({**self.shares_pct, **plan.shares_pct}, {**self.limits_pct, **plan.limits_pct})

    def after(self, cycle: Cycle) -> "Held":
        """A plan that was refused, or only recorded, changes nothing."""
        return self.with_plan(cycle.plan) if cycle.outcome is not None and cycle.outcome.ok else self


@dataclass(frozen=True, slots=True)
class Cpu:
    """Per cent of a core. limited: whether every instance of it has a limit."""

    reserved_pct: float = 0.0
    limit_pct: float = 0.0
    limited: bool = True


def in_all(now: Snapshot, placement: Placement, held: Held) -> Cpu:
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


def of_operator(now: Snapshot, placement: Placement, held: Held, topology: str, operator: str) -> Cpu:
    """Of the placed instances of one operator, each by itself: what its neighbours take is not looked at."""
    given = {n.name: n.cpu_pct for n in now.nodes}
    mine = [(i, s) for i, s in placement.slots.items() if (i.topology, i.operator) == (topology, operator)]
    parts = [of_instance(i, given.get(slot.node, CORE_PCT), held) for i, slot in mine]
    limited = bool(parts) and all(p.limited for p in parts)
    return Cpu(sum(p.reserved_pct for p in parts), sum(p.limit_pct for p in parts), limited)


def of_instance(instance: Instance, node_pct: float, held: Held) -> Cpu:
    most = min(CORE_PCT, node_pct)
    limit = held.limits_pct.get(instance)
    may_use = most if limit is None else min(limit, most)
    share = held.shares_pct.get(instance)
    return Cpu(may_use if share is None else min(share, most), may_use, limit is not None)
