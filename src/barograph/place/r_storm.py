"""R-Storm (Peng et al. 2015): declared CPU and memory are hard limits; each instance to the node nearest its demand.

Distance = sqrt(dcpu^2 + dmem^2 + net^2), differences relative to what the node has left; net is 0 on the reference
node, 0.5 in its rack, 1 elsewhere. A topology is placed completely or not at all. A topology that runs completely and
within the limits stays as it is; lost instances are placed alone, and only if that fails the whole topology is placed
again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.support.adopt import adopt
from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Real, Whole, to_placement
from barograph.place.support.heaps import Heaps
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import refused

RACK, FAR = 0.5, 1.0


@dataclass(frozen=True)
class RStorm:
    """The Placer of R-Storm. Both options are off in R-Storm itself; AUTOSCALE (Kombi et al.) has both.

    one_per_worker: "at most one thread for each operator on a given processing unit", as long as some worker with room
    has none; this takes precedence over distance.
    anew_on_rescale: a topology whose parallelism changes is placed from scratch, as Storm's rebalance does. Otherwise
    fewer instances would stay spread over as many nodes as before.
    """

    one_per_worker: bool = False
    anew_on_rescale: bool = False

    def __call__(
        self,
        history: Sequence[Cycle],  # noqa: ARG002
        now: Snapshot,
        demand: Demand,
        allotment: Allotment,
    ) -> PlaceDecision:
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        racks = np.unique([n.rack for n in now.nodes], return_inverse=True)[1]
        held = adopt(cluster, topologies)
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for arrays, (where, heaps) in zip(topologies, held, strict=True):
            anew = self.anew_on_rescale and _rescaled(arrays)
            if anew:
                _release(arrays, where, heaps)
            why = ""
            lost = int((where < 0).sum())
            if lost:
                prefer = arrays.present if anew else np.full_like(arrays.present, -1)
                why = _place(cluster, arrays, where, heaps, racks, prefer, self.one_per_worker)
                if why and lost < arrays.size:
                    _release(arrays, where, heaps)
                    why = _place(cluster, arrays, where, heaps, racks, prefer, self.one_per_worker)
                if why:
                    unplaced += refused(list(arrays.instances), why)
            numbers = {"instances": float(arrays.size), "placed_now": 0.0 if why else float(lost)}
            code = ReasonCode.TOPOLOGY_NOT_PLACED if why else ReasonCode.PLACED_BY_DECLARATION
            reasons.append(Reason(arrays.topology.name, code, why or "nearest to its declared CPU and memory", numbers))
            parts.append((arrays.instances, where))
        return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))


def _rescaled(arrays: TopologyArrays) -> bool:
    return any(o.parallelism != count for o, count in zip(arrays.operators, arrays.counts.tolist(), strict=True))


def in_rotation(arrays: TopologyArrays) -> Iterator[int]:
    """Breadth-first from the sources, one instance of each component in rotation."""
    reached = [o.name for o in arrays.topology.breadth_first]
    names = reached + [o.name for o in arrays.topology.operators if o.name not in set(reached)]
    positions = [arrays.operator_position(name) for name in names]
    for turn in range(int(arrays.counts.max(initial=0))):
        for k in positions:
            if turn < arrays.counts[k]:
                yield int(arrays.start[k]) + turn


def _place(
    cluster: ClusterArrays,
    arrays: TopologyArrays,
    where: Whole,
    heaps: Heaps,
    racks: Whole,
    prefer: Whole,
    one_per_worker: bool,
) -> str:
    """Place the instances without a slot. Returns an empty string, or why it failed; then nothing has changed.

    prefer: the slot that each instance gets if the node of that slot is chosen; -1 for none.
    """
    net: Real | None = None
    if (where >= 0).any():
        # the reference node of a running topology is the node with most of its instances
        net = _distances(int(np.bincount(cluster.slot_node[where[where >= 0]]).argmax()), racks)
    left = _Inverse(cluster)
    put: list[int] = []
    for i in in_rotation(arrays):
        if where[i] >= 0:
            continue
        cpu, memory = float(arrays.cpu_pct[i]), float(arrays.memory_mb[i])
        room = (cluster.cpu_left + HAIR >= cpu) & (cluster.memory_left + HAIR >= memory)
        avoid = _slots_of_operator(arrays, where, i) if one_per_worker else frozenset[int]()
        fits = heaps.fits(memory, avoid) & room
        if avoid and not fits.any():
            avoid = frozenset()
            fits = heaps.fits(memory) & room
        if not fits.any():
            for k in put:
                _take_back(arrays, where, heaps, k)
            return _missing(arrays, i)
        if net is None:
            node = _most_room(cluster, fits, racks)
            net = _distances(node, racks)
        else:
            node = int(np.where(fits, left.squared(cpu, memory) + net, np.inf).argmin())
        slot = heaps.slot_for(node, memory, int(prefer[i]), avoid)
        heaps.put(slot, cpu, memory)
        left.refresh(node)
        where[i] = slot
        put.append(i)
    return ""


def _slots_of_operator(arrays: TopologyArrays, where: Whole, i: int) -> frozenset[int]:
    """Slots that have an instance of the same operator as instance i."""
    slots = where[arrays.operator_of == arrays.operator_of[i]]
    return frozenset(slots[slots >= 0].tolist())


def _distances(reference: int, racks: Whole) -> Real:
    """net^2 of every node."""
    net = np.where(racks == racks[reference], RACK**2, FAR**2)
    net[reference] = 0.0
    return net


class _Inverse:
    """1 / what each node has left, kept up to date, so that computing a distance needs no division."""

    def __init__(self, cluster: ClusterArrays) -> None:
        self.cluster = cluster
        self.cpu = 1.0 / np.maximum(cluster.cpu_left, HAIR)
        self.memory = 1.0 / np.maximum(cluster.memory_left, HAIR)

    def refresh(self, node: int) -> None:
        self.cpu[node] = 1.0 / max(float(self.cluster.cpu_left[node]), HAIR)
        self.memory[node] = 1.0 / max(float(self.cluster.memory_left[node]), HAIR)

    def squared(self, cpu_pct: float, memory_mb: float) -> Real:
        """dcpu^2 + dmem^2 of every node: the parts of its free CPU and memory that would still be free."""
        dcpu, dmem = 1.0 - cpu_pct * self.cpu, 1.0 - memory_mb * self.memory
        found: Real = dcpu * dcpu + dmem * dmem
        return found


def _most_room(cluster: ClusterArrays, fits: NDArray[np.bool_], racks: Whole) -> int:
    """The node with most room in the rack with most room: the scarcer of CPU and memory, as shares of the cluster."""
    cpu = cluster.cpu_left / max(float(cluster.cpu_left.sum()), HAIR)
    memory = cluster.memory_left if np.isfinite(cluster.memory_left).all() else np.ones(len(cpu))
    memory = memory / max(float(memory.sum()), HAIR)
    rack = np.minimum(np.bincount(racks, weights=cpu), np.bincount(racks, weights=memory))
    rack[np.bincount(racks, weights=fits) == 0] = -1.0
    in_rack = fits & (racks == int(rack.argmax()))
    return int(np.where(in_rack, np.minimum(cpu, memory), -1.0).argmax())


def _take_back(arrays: TopologyArrays, where: Whole, heaps: Heaps, i: int) -> None:
    heaps.remove(int(where[i]), float(arrays.cpu_pct[i]), float(arrays.memory_mb[i]))
    where[i] = -1


def _release(arrays: TopologyArrays, where: Whole, heaps: Heaps) -> None:
    for i in np.flatnonzero(where >= 0).tolist():
        _take_back(arrays, where, heaps, i)


def _missing(arrays: TopologyArrays, i: int) -> str:
    cpu, memory = float(arrays.cpu_pct[i]), float(arrays.memory_mb[i])
    return (
        f"no node has {cpu:g} % CPU, {memory:g} MB and a worker left for {arrays.instances[i]}, "
        f"and {arrays.topology.name} is placed completely or not at all"
    )
