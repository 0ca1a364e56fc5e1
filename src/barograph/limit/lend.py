"""The limit of each instance: its share, plus what it may borrow of its node.

A share is guaranteed to an instance, and is what a placer plans with. An instance that may borrow idle CPU serves every
row sooner; limits only protect topologies on one node from each other. So a topology that has a node to itself is not
limited: each of its instances may use all that one instance can.
Where several share a node, the instances of each may together use what the needs of the others and the threads beside
the instances leave, in proportion to their shares: a topology that surges, however far, takes nothing that another
needs.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import floor

from barograph.model import BESIDE_CYCLES, Cycle, Demand, Instance, Placement, Snapshot, beside_part

HAIR_PCT = 1e-6
# A limit of nothing would stop an instance. One below this would stop others too: the kernel hands out a millisecond at
# least, so the periods of a lower one are so long that its thread, stopped in the middle of Java code, keeps all the
# threads of its JVM waiting for up to a tenth of a second at each collection of garbage.
LEAST_PCT = 5.0
SHORT_CYCLES = 5  # for how long a topology that was short of CPU still counts as short


def topologies_in_need(history: Sequence[Cycle], demand: Demand) -> set[str]:
    """Topologies that need more than their shares, or did within the last SHORT_CYCLES cycles."""
    return _short(demand).union(*(_short(cycle.demand) for cycle in history[-SHORT_CYCLES:]))


def with_borrowed(
    history: Sequence[Cycle],
    now: Snapshot,
    target: Placement,
    demand: Demand,
    shares_pct: Mapping[Instance, float],
    short: AbstractSet[str],
) -> dict[Instance, float]:
    """The limits, in whole per cents where they are above the shares, so that they do not change with every row.

    An instance that moves is on both its nodes for a while and must do with the lower of two limits. One that is to go
    counts as if it needed all that one instance can use. Where CPU is short (the demand has ceilings), a topology keeps
    its whole share, headroom included, and no more. The threads beside the instances (network, GC) need CPU too: a node
    without any left stops them all until its next period. Borrowers leave that CPU free; topologies that are short give
    it up even from their shares, in proportion to them.
    """
    needs_pct = {
        Instance(o.topology, o.operator, index): need
        for o in demand.operators
        for index, need in enumerate(o.shares_pct if o.ceilings_pct else o.held_pct or o.shares_pct)
    }
    limits: dict[Instance, float] = {}
    tenancy = _tenants(now, target)
    beside: dict[str, float] = {}
    if any(len(tenants) > 1 for tenants in tenancy.values()):
        part = beside_part([*(cycle.snapshot for cycle in history[-BESIDE_CYCLES:]), now])
        beside = {n.name: n.cpu_pct * part.get(n.name, 0.0) for n in now.nodes}
    for node, tenants in tenancy.items():
        cpu_pct = now.node(node).cpu_pct
        most = min(100.0, cpu_pct)
        needed = {t: sum(needs_pct.get(i, most) for i in mine) for t, mine in tenants.items()}
        due_by_short = sum(need for t, need in needed.items() if t in short)
        kept = _kept_for(needed, short, due_by_short, cpu_pct)
        for topology, mine in tenants.items():
            pays = needed[topology] / max(HAIR_PCT, due_by_short) if topology in short else 1.0
            room = cpu_pct - sum(pct for t, pct in kept.items() if t != topology) - beside.get(node, 0.0) * pays
            times = float("inf")
            if len(tenants) > 1:
                least = 0.0 if topology in short else 1.0
                times = _times([shares_pct.get(i, most) for i in mine], room, most, least)
            for i in mine:
                share = shares_pct.get(i, most)
                limit = most if times * share >= most else float(floor(times * share + 1e-9))
                limits[i] = min(limits.get(i, limit), limit)
    return {
        i: max(LEAST_PCT if i.topology in short else share, limits.get(i, share)) for i, share in shares_pct.items()
    }


def _kept_for(
    needed: Mapping[str, float], short: AbstractSet[str], due_by_short: float, cpu_pct: float
) -> dict[str, float]:
    """What a node keeps for each of its topologies. due_by_short: what those that are short need together.

    Where it has less than they need together, as it may until a placement has followed the load, those that are short
    divide what the others leave, in proportion to what they need. If each were only left what the others do not need,
    all would be held back and the node would be idle in part.
    """
    firm = sum(need for t, need in needed.items() if t not in short)
    part = 1.0 if firm + due_by_short <= cpu_pct else max(0.0, cpu_pct - firm) / max(HAIR_PCT, due_by_short)
    return {t: need * part if t in short else need for t, need in needed.items()}


def _short(demand: Demand) -> set[str]:
    return {o.topology for o in demand.operators if o.ceilings_pct and sum(o.held_pct) > sum(o.shares_pct) + HAIR_PCT}


def _tenants(now: Snapshot, target: Placement) -> dict[str, dict[str, dict[Instance, None]]]:
    """Of each node, the instances that run there before or after the plan, by topology."""
    found: dict[str, dict[str, dict[Instance, None]]] = {n.name: {} for n in now.nodes}
    for placement in (now.placement, target):
        for instance, slot in placement.slots.items():
            if slot.node in found:
                found[slot.node].setdefault(instance.topology, {})[instance] = None
    return found


def _times(shares: list[float], room: float, most: float, least: float) -> float:
    """The largest f with sum(min(most, f * share)) <= room; at least ``least``."""
    left = sorted(shares)
    total = sum(left)
    while left and total > 0.0:
        f = room / total
        if f * left[-1] <= most:
            return max(least, f)
        total -= left.pop()  # it has all it can use
        room -= most
    return float("inf")
