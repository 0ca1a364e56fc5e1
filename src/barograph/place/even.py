"""Even, Storm's default scheduler: workers round-robin over nodes, instances round-robin over workers.

It uses slots and seats only: no CPU, no memory, no traffic, no priority; topologies are served in order of submission.
Running instances stay, except in slots whose number of instances does not occur in the ideal split, and these move only
when something has to be scheduled anyway.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.support.cluster_arrays import ClusterArrays, Whole, to_placement
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import refused, wanted_workers


def even(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The Placer of Storm's default scheduler."""
    cluster = ClusterArrays(now, allotment)
    topologies = topology_arrays(now, demand, cluster, by_level=False)
    for arrays in topologies:  # running instances keep their slots until their topology is served
        book(cluster, arrays, arrays.present)
    parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
    for arrays in topologies:
        where, why = deal_evenly(cluster, arrays)
        parts.append((arrays.instances, where))
        unplaced += refused([i for i, s in zip(arrays.instances, where.tolist(), strict=True) if s < 0], why)
        moved = float(((where != arrays.present) & (where >= 0)).sum())
        numbers = {
            "instances": float(arrays.size),
            "workers": float(len(set(where[where >= 0].tolist()))),
            "moves": moved,
        }
        why = "round-robin over the free slots"
        reasons.append(Reason(arrays.topology.name, ReasonCode.PLACED_EVENLY, why, numbers))
    return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))


def book(cluster: ClusterArrays, arrays: TopologyArrays, where: Whole) -> None:
    """Take the seats of all instances that have a slot."""
    slots, counts = np.unique(where[where >= 0], return_counts=True)
    cluster.seats_left[slots] -= counts
    if not cluster.shared:
        cluster.owner[slots] = arrays.number


def _release(cluster: ClusterArrays, slots: Sequence[int], held: dict[int, list[int]]) -> None:
    for slot in slots:
        cluster.seats_left[slot] += len(held[slot])
        cluster.owner[slot] = -1


def deal_evenly(cluster: ClusterArrays, arrays: TopologyArrays) -> tuple[Whole, str]:
    """Serve one topology: the slot of each instance, and why some have none."""
    where = arrays.present.copy()
    held: dict[int, list[int]] = defaultdict(list)
    for i, slot in enumerate(where.tolist()):
        if slot >= 0:
            held[slot].append(i)
    free = free_slots(cluster, arrays, held)
    target = min(wanted_workers(arrays, cluster), len(free) + len(held))
    missing = [i for i, slot in enumerate(where.tolist()) if slot < 0]
    if len(held) < target or missing:
        wrong = _slots_off_the_ideal(held, arrays.size, target)
        _release(cluster, wrong, held)
        for slot in wrong:
            where[held.pop(slot)] = -1
        missing = [i for i, slot in enumerate(where.tolist()) if slot < 0]
        free = free_slots(cluster, arrays, held)
        target = min(wanted_workers(arrays, cluster), len(free) + len(held))
    if missing:
        _deal_missing(cluster, arrays, where, missing, sorted_slots(cluster, free), target - len(held))
    why = f"no seat is free in any of the {len(free) + len(held)} slots {arrays.topology.name} may use"
    return where, why


def _deal_missing(
    cluster: ClusterArrays, arrays: TopologyArrays, where: Whole, missing: list[int], slots: Whole, workers: int
) -> None:
    """Instance i to new worker i mod k; workers without free seats are skipped; more workers if seats are too few."""
    enough = int(np.searchsorted(np.cumsum(cluster.seats_left[slots]), len(missing))) + 1
    ring = slots[: max(workers, enough)]
    if len(ring) == 0:
        return
    slots_in_turn = ring[np.arange(len(missing)) % len(ring)]
    if bool((np.bincount(slots_in_turn, minlength=len(cluster.seats_left)) <= cluster.seats_left).all()):
        where[missing] = slots_in_turn
        book(cluster, arrays, slots_in_turn)
        return
    turn = 0
    for i in missing:
        for step in range(len(ring)):
            slot = int(ring[(turn + step) % len(ring)])
            if cluster.seats_left[slot] > 0:
                where[i] = slot
                cluster.take(slot, arrays.number)
                turn += step + 1
                break


def free_slots(cluster: ClusterArrays, arrays: TopologyArrays, held: Iterable[int]) -> Whole:
    """Slots with a free seat in which this topology has no instance yet, in the cluster's order."""
    mine = np.zeros(len(cluster.names), dtype=np.bool_)
    mine[cluster.allowed(arrays.topology.name)] = True
    fresh = np.ones(len(cluster.slot_node), dtype=np.bool_)
    fresh[list(held)] = False
    return cluster.open_to(arrays.number, np.flatnonzero(mine[cluster.slot_node] & fresh))


def sorted_slots(cluster: ClusterArrays, free: Whole) -> Whole:
    """Nodes by falling number of free slots (ties by order), one slot of each node per round, slots rising."""
    nodes = cluster.slot_node[free]
    counts = np.bincount(nodes, minlength=len(cluster.names))
    before = np.concatenate([[0], np.cumsum(counts)])
    turn = np.arange(len(free)) - before[nodes]  # free is sorted by node: position among the free slots of its node
    found: Whole = free[np.lexsort((nodes, -counts[nodes], turn))]
    return found


def _slots_off_the_ideal(held: dict[int, list[int]], instances: int, workers: int) -> list[int]:
    """Slots whose instance count matches no remaining share of the ideal split."""
    base, more = divmod(instances, workers) if workers else (0, 0)
    shares = Counter({base: workers - more}) + Counter({base + 1: more})
    wrong = []
    for slot in sorted(held):
        if shares[len(held[slot])] > 0:
            shares[len(held[slot])] -= 1
        else:
            wrong.append(slot)
    return wrong
