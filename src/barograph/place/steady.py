"""Steady: a placement that still holds is left alone; one that does not is mended with room to grow.

Every change costs an epoch boundary, however many instances move. So the placer inside is asked to make room for what
the demand *reserves* (what shares lately were and may soon become), not only for what they are: a load that climbs
moves its instances once, and a valley does not pack what the next peak would have to unpack. Moves by choice are made
only within the reserved room. Where what is reserved does not fit, the demand itself decides.

A change leaves a backlog behind, and what it takes to make up for that is no reason for the next change: for some time
after one, instances move only if they have lost their places.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from barograph.model import Allotment, Cycle, Demand, Instance, Reason, Snapshot
from barograph.place import PlaceDecision, Placer
from barograph.place.board import HAIR
from barograph.place.thrifty import Thrifty
from barograph.place.worth import unchanged


@dataclass(frozen=True)
class Steady:
    """The Placer. inside: places when something has to be placed, and improves when it may. settle_s: for so long after
    a change a node may be asked for more than it has."""

    inside: tuple[Placer, ...] = field(default=(Thrifty(),))
    settle_s: float = 30.0

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        (place,) = self.inside
        roomy = with_reserve(demand)
        if roomy is demand:
            return place(history, now, demand, allotment)
        present = fit(now, demand, allotment)
        if present is Fit.HOLDS:
            if fit(now, roomy, allotment) is Fit.HOLDS:
                return place(history, now, roomy, allotment)
            return PlaceDecision(now.placement)
        if present is Fit.CROWDED and self._settling(history, now, demand):
            why = "left alone: a change is being made up for"
            return PlaceDecision(now.placement, (), (Reason("cluster", why, {"settle_s": self.settle_s}),))
        found = place(history, now, roomy, allotment)
        return found if not found.unplaced else place(history, now, demand, allotment)

    def _settling(self, history: Sequence[Cycle], now: Snapshot, demand: Demand) -> bool:
        """Whether everything was changed a moment ago, and nothing is rescaled, which would need a place anyway."""
        counts = {(t.name, o.name): o.parallelism for t in now.topologies for o in t.operators}
        if any(counts[o.topology, o.operator] != o.parallelism for o in demand.operators):
            return False
        stretches = [unchanged(history, now, t.name) for t in now.topologies]
        return all(not stretch.first and stretch.seconds < self.settle_s for stretch in stretches)


def with_reserve(demand: Demand) -> Demand:
    """The demand as if each instance needed all that is reserved for it; the same demand where nothing is."""
    if not any(o.reserved_pct for o in demand.operators):
        return demand
    operators = tuple(replace(o, shares_pct=o.reserved_pct) if o.reserved_pct else o for o in demand.operators)
    return replace(demand, operators=operators)


class Fit(Enum):
    """Whether the present placement fits a demand: it does; a node lacks CPU; an instance is not where it may be."""

    HOLDS = "holds"
    CROWDED = "crowded"
    MISPLACED = "misplaced"


def fit(now: Snapshot, demand: Demand, allotment: Allotment) -> Fit:
    live = {w.slot for w in now.workers}
    left = {n.name: n.cpu_pct + HAIR for n in now.nodes}
    named = {node for nodes in allotment.nodes.values() for node in nodes}
    taken: dict[str, float] = defaultdict(float)
    for o in demand.operators:
        mine = allotment.nodes.get(o.topology)
        for index, share in enumerate(o.shares_pct):
            slot = now.placement.get(Instance(o.topology, o.operator, index))
            if slot is None or slot.node not in left or (now.shared_workers and slot not in live):
                return Fit.MISPLACED
            if (slot.node not in mine) if mine is not None else slot.node in named:
                return Fit.MISPLACED
            taken[slot.node] += share
    return Fit.HOLDS if all(share <= left[node] for node, share in taken.items()) else Fit.CROWDED
