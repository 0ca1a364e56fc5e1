"""Steady: a placement that still holds is left alone; one that does not is mended with room to grow.

Every change costs an epoch boundary, however many instances move. So the placer inside is asked to make room for what
the demand *reserves* (what shares lately were and may soon become), not only for what they are: a load that climbs
moves its instances once, and a valley does not pack what the next peak would have to unpack. Moves by choice are made
only within the reserved room. Where what is reserved does not fit, the demand itself decides.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from barograph.model import Allotment, Cycle, Demand, Instance, Snapshot
from barograph.place import PlaceDecision, Placer
from barograph.place.board import HAIR
from barograph.place.thrifty import Thrifty


@dataclass(frozen=True)
class Steady:
    """The Placer. inside: places when something has to be placed, and improves when it may."""

    inside: tuple[Placer, ...] = field(default=(Thrifty(),))

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        (place,) = self.inside
        roomy = with_reserve(demand)
        if roomy is demand:
            return place(history, now, demand, allotment)
        if holds(now, demand, allotment):
            if holds(now, roomy, allotment):
                return place(history, now, roomy, allotment)
            return PlaceDecision(now.placement)
        found = place(history, now, roomy, allotment)
        return found if not found.unplaced else place(history, now, demand, allotment)


def with_reserve(demand: Demand) -> Demand:
    """The demand as if each instance needed all that is reserved for it; the same demand where nothing is."""
    if not any(o.reserved_pct for o in demand.operators):
        return demand
    operators = tuple(replace(o, shares_pct=o.reserved_pct) if o.reserved_pct else o for o in demand.operators)
    return replace(demand, operators=operators)


def holds(now: Snapshot, demand: Demand, allotment: Allotment) -> bool:
    """Whether everything that is demanded runs where it may, within each node's CPU."""
    live = {w.slot for w in now.workers}
    left = {n.name: n.cpu_pct + HAIR for n in now.nodes}
    named = {node for nodes in allotment.nodes.values() for node in nodes}
    taken: dict[str, float] = defaultdict(float)
    for o in demand.operators:
        mine = allotment.nodes.get(o.topology)
        for index, share in enumerate(o.shares_pct):
            slot = now.placement.get(Instance(o.topology, o.operator, index))
            if slot is None or slot.node not in left or (now.shared_workers and slot not in live):
                return False
            if (slot.node not in mine) if mine is not None else slot.node in named:
                return False
            taken[slot.node] += share
    return all(share <= left[node] for node, share in taken.items())
