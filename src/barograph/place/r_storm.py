"""R-Storm (Peng et al. 2015): declared CPU and memory are hard limits; each instance to the node nearest to its wants.

Distance = sqrt(dcpu^2 + dmem^2 + net^2), differences relative to what the node has left; net is 0 on the reference
node, 0.5 in its rack, 1 elsewhere. All or nothing per topology. A topology that runs whole and within the limits stays
as it is; where instances were lost, those alone are placed, and only if that fails the topology is placed anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.model import Allotment, Cycle, Demand, Reason, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.adopt import adopt
from barograph.place.board import HAIR, Board, Real, Whole, to_placement
from barograph.place.crew import Crew, crews
from barograph.place.heaps import Heaps
from barograph.place.wanted import refused

RACK, FAR = 0.5, 1.0


@dataclass(frozen=True)
class RStorm:
    """The Placer of R-Storm. Both options are off in R-Storm itself; AUTOSCALE (Kombi et al.) has both.

    one_per_worker: "at most one thread for each operator on a given processing unit", as long as some worker with room
    has none; this goes before nearness.
    anew_on_rescale: a topology whose parallelism changes is placed from nothing, as Storm's rebalance does. Otherwise
    fewer instances would stay spread over as many nodes as more had needed.
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
        board = Board(now, allotment)
        everyone = crews(now, demand, board)
        racks = np.unique([n.rack for n in now.nodes], return_inverse=True)[1]
        held = adopt(board, everyone)
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        for crew, (where, heaps) in zip(everyone, held, strict=True):
            anew = self.anew_on_rescale and _rescaled(crew)
            if anew:
                _release(crew, where, heaps)
            why = ""
            lost = int((where < 0).sum())
            if lost:
                prefer = crew.present if anew else np.full_like(crew.present, -1)
                why = _place(board, crew, where, heaps, racks, prefer, self.one_per_worker)
                if why and lost < crew.size:
                    _release(crew, where, heaps)
                    why = _place(board, crew, where, heaps, racks, prefer, self.one_per_worker)
                if why:
                    unplaced += refused(list(crew.instances), why)
            numbers = {"instances": float(crew.size), "placed_now": 0.0 if why else float(lost)}
            reasons.append(Reason(crew.topology.name, why or "nearest to its declared CPU and memory", numbers))
            parts.append((crew.instances, where))
        return PlaceDecision(to_placement(board, parts), tuple(unplaced), tuple(reasons))


def _rescaled(crew: Crew) -> bool:
    return any(o.parallelism != count for o, count in zip(crew.operators, crew.counts.tolist(), strict=True))


def in_rotation(crew: Crew) -> Iterator[int]:
    """Breadth-first from the sources, one instance of each component in rotation."""
    reached = [o.name for o in crew.topology.breadth_first]
    names = reached + [o.name for o in crew.topology.operators if o.name not in set(reached)]
    positions = [crew.operator_position(name) for name in names]
    for turn in range(int(crew.counts.max(initial=0))):
        for k in positions:
            if turn < crew.counts[k]:
                yield int(crew.start[k]) + turn


def _place(
    board: Board, crew: Crew, where: Whole, heaps: Heaps, racks: Whole, prefer: Whole, one_per_worker: bool
) -> str:
    """Place what has no slot. An empty string, or why it cannot be; then nothing has changed.

    prefer: the slot that each instance gets if its node is chosen anyway; -1 for none.
    """
    net: Real | None = None
    if (where >= 0).any():
        # the reference node of a topology that runs is the one that holds most of it
        net = _distances(int(np.bincount(board.slot_node[where[where >= 0]]).argmax()), racks)
    left = _Inverse(board)
    put: list[int] = []
    for i in in_rotation(crew):
        if where[i] >= 0:
            continue
        cpu, memory = float(crew.cpu_pct[i]), float(crew.memory_mb[i])
        room = (board.cpu_left + HAIR >= cpu) & (board.memory_left + HAIR >= memory)
        avoid = _slots_of_operator(crew, where, i) if one_per_worker else frozenset[int]()
        fits = heaps.fits(memory, avoid) & room
        if avoid and not fits.any():
            avoid = frozenset()
            fits = heaps.fits(memory) & room
        if not fits.any():
            for k in put:
                _take_back(crew, where, heaps, k)
            return _missing(crew, i)
        if net is None:
            node = _most_room(board, fits, racks)
            net = _distances(node, racks)
        else:
            node = int(np.where(fits, left.squared(cpu, memory) + net, np.inf).argmin())
        slot = heaps.slot_for(node, memory, int(prefer[i]), avoid)
        heaps.put(slot, cpu, memory)
        left.refresh(node)
        where[i] = slot
        put.append(i)
    return ""


def _slots_of_operator(crew: Crew, where: Whole, i: int) -> frozenset[int]:
    """Slots that have an instance of the same operator as instance i."""
    slots = where[crew.operator_of == crew.operator_of[i]]
    return frozenset(slots[slots >= 0].tolist())


def _distances(reference: int, racks: Whole) -> Real:
    """net^2 of every node."""
    net = np.where(racks == racks[reference], RACK**2, FAR**2)
    net[reference] = 0.0
    return net


class _Inverse:
    """1 / what each node has left, kept up to date, so that a distance costs no division."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.cpu = 1.0 / np.maximum(board.cpu_left, HAIR)
        self.memory = 1.0 / np.maximum(board.memory_left, HAIR)

    def refresh(self, node: int) -> None:
        self.cpu[node] = 1.0 / max(float(self.board.cpu_left[node]), HAIR)
        self.memory[node] = 1.0 / max(float(self.board.memory_left[node]), HAIR)

    def squared(self, cpu_pct: float, memory_mb: float) -> Real:
        """dcpu^2 + dmem^2 of every node: which part of what it has left it would still have."""
        dcpu, dmem = 1.0 - cpu_pct * self.cpu, 1.0 - memory_mb * self.memory
        found: Real = dcpu * dcpu + dmem * dmem
        return found


def _most_room(board: Board, fits: NDArray[np.bool_], racks: Whole) -> int:
    """The node with most room in the rack with most room: the scarcer of CPU and memory, as shares of the cluster."""
    cpu = board.cpu_left / max(float(board.cpu_left.sum()), HAIR)
    memory = board.memory_left if np.isfinite(board.memory_left).all() else np.ones(len(cpu))
    memory = memory / max(float(memory.sum()), HAIR)
    rack = np.minimum(np.bincount(racks, weights=cpu), np.bincount(racks, weights=memory))
    rack[np.bincount(racks, weights=fits) == 0] = -1.0
    in_rack = fits & (racks == int(rack.argmax()))
    return int(np.where(in_rack, np.minimum(cpu, memory), -1.0).argmax())


def _take_back(crew: Crew, where: Whole, heaps: Heaps, i: int) -> None:
    heaps.remove(int(where[i]), float(crew.cpu_pct[i]), float(crew.memory_mb[i]))
    where[i] = -1


def _release(crew: Crew, where: Whole, heaps: Heaps) -> None:
    for i in np.flatnonzero(where >= 0).tolist():
        _take_back(crew, where, heaps, i)


def _missing(crew: Crew, i: int) -> str:
    cpu, memory = float(crew.cpu_pct[i]), float(crew.memory_mb[i])
    return (
        f"no node has {cpu:g} % CPU, {memory:g} MB and a worker left for {crew.instances[i]}, "
        f"and {crew.topology.name} is placed whole or not at all"
    )
