"""Steady: a placement that still fits is kept; one that does not is repaired with room for growth.

Every change costs an epoch boundary, however many instances move. So the inner placer is asked to make room for what
the demand *reserves* (recent and expected shares), not only for the present shares: a rising load moves its instances
once, and a short low load does not pack instances that the next peak would spread again. Optional moves are made only
within the reserved room. If the reserved shares do not fit, the present shares are used.

A change leaves a backlog, and the CPU needed to clear it is no reason for the next change: for some time after a
change, instances move only if they have lost their places.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from barograph.model import Allotment, Cycle, Demand, Instance, Reason, ReasonCode, Snapshot
from barograph.model.plan import BOUNDARY_S
from barograph.place import PlaceDecision, Placer
from barograph.place.adaptive.thrifty import Thrifty
from barograph.place.adaptive.worth import unchanged
from barograph.place.support.cluster_arrays import HAIR

NEARLY_FULL = 0.95


@dataclass(frozen=True)
class Steady:
    """The Placer. inside: the placer that places and improves. settle_s: for that long after a change, a node may
    be overcommitted."""

    inside: tuple[Placer, ...] = field(default=(Thrifty(),))
    settle_s: float = 30.0

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        (place,) = self.inside
        roomy = with_reserve(demand)
        if roomy is demand:
            return place(history, now, demand, allotment)
        present = fit(now, without_headroom(now, demand), allotment)
        if present is Fit.HOLDS:
            if fit(now, roomy, allotment) is Fit.HOLDS:
                return place(history, now, roomy, allotment)
            return PlaceDecision(now.placement)
        if present is Fit.CROWDED and self._settling(history, now, demand):
            why = "kept: the backlog of the last change is still being cleared"
            reason = Reason("cluster", ReasonCode.STILL_SETTLING, why, {"settle_s": self.settle_s})
            return PlaceDecision(now.placement, (), (reason,))
        found = place(history, now, roomy, allotment)
        return found if not found.unplaced else place(history, now, demand, allotment)

    def _settling(self, history: Sequence[Cycle], now: Snapshot, demand: Demand) -> bool:
        """Whether every topology was changed less than settle_s ago, and none is rescaled, which forces moves."""
        if any((t.target_p99_ms or 0.0) >= 1e3 * BOUNDARY_S for t in now.topologies):
            return False  # a second pause misses no target, and a crowded node might
        counts = {(t.name, o.name): o.parallelism for t in now.topologies for o in t.operators}
        if any(counts[o.topology, o.operator] != o.parallelism for o in demand.operators):
            return False
        stretches = [unchanged(history, now, t.name) for t in now.topologies]
        return all(not stretch.first and stretch.seconds < self.settle_s for stretch in stretches)


def with_reserve(demand: Demand) -> Demand:
    """The demand as if each instance needed all that is reserved for it; the same demand if nothing is reserved."""
    if not any(o.reserved_pct for o in demand.operators):
        return demand
    operators = tuple(replace(o, shares_pct=o.reserved_pct) if o.reserved_pct else o for o in demand.operators)
    return replace(demand, operators=operators)


def without_headroom(now: Snapshot, demand: Demand) -> Demand:
    """The demand with next to no headroom for topologies whose p99 should be below the length of a pause: a crowded
    node makes their rows wait a little, and a move surely misses that. The same demand if there is none."""
    tight = {t.name for t in now.topologies if t.target_p99_ms is not None and t.target_p99_ms < 1e3 * BOUNDARY_S}
    if not tight:
        return demand
    least = (
        replace(o, shares_pct=tuple(min(s, h / NEARLY_FULL) for s, h in zip(o.shares_pct, o.held_pct, strict=True)))
        if o.topology in tight and o.held_pct
        else o
        for o in demand.operators
    )
    return replace(demand, operators=tuple(least))


class Fit(Enum):
    """Whether the present placement fits a demand: yes; a node lacks CPU; an instance is where it may not be."""

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
