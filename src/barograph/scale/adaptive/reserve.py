"""The room that placers should leave for instances, and how many nodes that takes. Pure.

Room is for the expected growth of the load, for the largest share of the last time, so that instances are not packed
during a short low load and spread again at the next peak, and for the threads that work for an instance.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from barograph.model import Cycle, Node, OperatorDemand, Snapshot, beside_part
from barograph.scale.adaptive.fit import fits
from barograph.scale.adaptive.growth import AHEAD_S, growth_within
from barograph.scale.protocol import instance_limit_pct

BESIDE_CYCLES = 15


def beside(history: Sequence[Cycle], now: Snapshot) -> float:
    """CPU of an instance and the threads that work for it, as a multiple of its own; the mean over nodes in use."""
    seen = [*(cycle.snapshot for cycle in history[-BESIDE_CYCLES:]), now]
    parts = [part for part in beside_part(seen).values() if part > 0]
    return 1.0 / (1.0 - sum(parts) / len(parts)) if parts else 1.0


def reserving(
    history: Sequence[Cycle],
    now: Snapshot,
    o: OperatorDemand,
    *,
    most_growth: float,
    room_s: float,
    times: float,
    shares_of: Callable[[OperatorDemand], Sequence[float]] = lambda before: before.shares_pct,
) -> OperatorDemand:
    """With the room for each instance. times: as ``beside``. shares_of: of the demand of an earlier cycle."""
    if not o.held_pct:
        return o  # an assumed share, for which nothing is reserved
    room = np.array(o.shares_pct) * min(most_growth, growth_within(history, now, o.topology, o.operator, AHEAD_S))
    for cycle in reversed(history):
        before = cycle.demand.of(o.topology, o.operator)
        if now.at_s - cycle.snapshot.at_s > room_s or before is None or not before.held_pct:
            break
        if before.parallelism == o.parallelism:
            room = np.maximum(room, shares_of(before))
    return replace(o, reserved_pct=tuple(np.minimum(room * times, instance_limit_pct(now)).tolist()))


def nodes_for(demands: Sequence[OperatorDemand], now: Snapshot) -> int:
    """The fewest nodes, largest first, that have room for all instances; all nodes where these have too little."""
    rooms = np.array([room for o in demands for room in (o.reserved_pct or o.shares_pct)])
    memory_mb = sum(o.parallelism * (now.topology(o.topology).operator(o.operator).memory_mb or 0.0) for o in demands)
    largest_first = sorted(now.nodes, key=lambda n: -n.cpu_pct)
    cpu_pct = np.cumsum([n.cpu_pct for n in largest_first])
    for count in range(1 + int(np.searchsorted(cpu_pct, float(rooms.sum()) - 1e-9)), len(largest_first)):
        taken = largest_first[:count]
        if _has_seats(taken, len(rooms), now) and _has_memory(taken, memory_mb) and fits(rooms, taken):
            return count
    return len(largest_first)


def _has_seats(nodes: Sequence[Node], instances: int, now: Snapshot) -> bool:
    names = {n.name for n in nodes}
    if now.workers and now.shared_workers:
        return sum(w.seats for w in now.workers if w.slot.node in names) >= instances
    return any(n.seats is None for n in nodes) or sum((n.seats or 0) * n.slots for n in nodes) >= instances


def _has_memory(nodes: Sequence[Node], memory_mb: float) -> bool:
    return sum(float("inf") if n.memory_mb is None else n.memory_mb for n in nodes) >= memory_mb
