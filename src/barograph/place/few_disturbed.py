"""Few-disturbed (Liu et al.): shares follow the load, and a placement changes only where a node is overloaded.

Two workers per node and topology, one for stateful (sf) and one for stateless (sl) instances. Where a node is
overloaded, the stateless worker is disturbed if that helps; room is searched tier by tier so that as few further
workers as possible are disturbed; the instances of disturbed workers are placed again; then nodes whose instances fit
on other nodes are emptied. It uses CPU shares and seats, no memory and no traffic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Refusal, Snapshot
from barograph.place import PlaceDecision
from barograph.place.few_disturbed_state import KINDS, SF, SL, FewDisturbedState
from barograph.place.support.cluster_arrays import HAIR, ClusterArrays, Whole, to_placement
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import refused


@dataclass(frozen=True, slots=True)
class FewDisturbed:
    """The Placer. scale_in: whether nodes are emptied whose instances fit on other nodes."""

    scale_in: bool = True

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG002
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        for arrays in topologies:
            _book_present(cluster, arrays)
        parts, unplaced, reasons = [], list[Refusal](), list[Reason]()
        states = list[FewDisturbedState]()
        for arrays in topologies:
            state = FewDisturbedState(cluster, arrays)
            states.append(state)
            disturb_overloaded(state)
            find_room(state)
            left = place_disturbed(state)
            # no node is emptied while an instance has no place
            emptied = empty_nodes(state) if self.scale_in and not left else 0
            where = state.into_slots()
            parts.append((arrays.instances, where))
            moved = (where != arrays.present) & (arrays.present >= 0)
            numbers = {
                "disturbed_stateful_workers": float(state.disturbed[SF].sum()),
                "disturbed_workers": float(sum(state.disturbed[k].sum() for k in KINDS)),
                "nodes_emptied": float(emptied),
                "moves": float(moved.sum()),
                "nodes": float(len(set(cluster.slot_node[where[where >= 0]].tolist()))),
            }
            why = "moved only instances of overloaded or emptied nodes"
            reasons.append(Reason(arrays.topology.name, ReasonCode.MOVED_IF_DISTURBED, why, numbers))
        for state, (instances, where) in zip(states, parts, strict=True):
            left = [i for i in np.flatnonzero(where < 0).tolist() if not _in_room_left(state, where, i)]
            if left:
                unplaced += refused([instances[i] for i in left], _missing(state, left))
        return PlaceDecision(to_placement(cluster, parts), tuple(unplaced), tuple(reasons))


def _in_room_left(state: FewDisturbedState, where: Whole, i: int) -> bool:
    """Topologies served later may have freed room: try the first node on which the instance fits now."""
    cluster, arrays = state.cluster, state.arrays
    cpu = float(arrays.cpu_pct[i])
    same_kind = state.kind_of == state.kind(i)
    for n in state.mine[cluster.cpu_left[state.mine] + HAIR >= cpu].tolist():
        same, other = ({int(s) for s in where[kind & (where >= 0)].tolist()} for kind in (same_kind, ~same_kind))
        slots = cluster.open_to(arrays.number, cluster.slots_of(n)).tolist()
        if not cluster.shared:  # exactly one worker per kind
            mine = same.intersection(cluster.slots_of(n))
            slots = [s for s in slots if s in mine or (not mine and s not in other)]
        slot = min(slots, key=lambda s: (s not in same, s in other, s), default=-1)
        if slot >= 0:
            where[i] = slot
            cluster.take(slot, arrays.number, cpu)
            return True
    return False


def _book_present(cluster: ClusterArrays, arrays: TopologyArrays) -> None:
    for i in np.flatnonzero(arrays.present >= 0).tolist():
        slot = int(arrays.present[i])
        if cluster.seats_left[slot] > 0 and cluster.owner[slot] in (-1, arrays.number):
            cluster.take(slot, arrays.number, float(arrays.cpu_pct[i]))
        else:
            arrays.present[i] = -1  # another topology has the slot, or it has no seat left: the instance must move


def disturb_overloaded(state: FewDisturbedState) -> None:
    """Step 1: on each used node with D(sl) + D(sf) > R_n, stateless first, stateful only if that is not enough."""
    for n in state.used_nodes().tolist():
        room, sf, sl = state.capacity[n], state.held[SF][n], state.held[SL][n]
        if sf + sl <= room + HAIR:
            continue
        if sf < room:
            state.disturb(n, SL)
        elif sl < room:
            state.disturb(n, SF)
        else:
            state.disturb(n, SL)
            state.disturb(n, SF)


def find_room(state: FewDisturbedState) -> None:
    """Step 2, by sums: reserve room tier by tier, only while demand is left.

    a: used nodes where this disturbs no worker; b: all used nodes, whose worker of that kind is then disturbed;
    c: free nodes.
    """
    used, free = state.used_nodes(), state.free_nodes()
    for nodes, only_harmless in ((used, True), (used, False), (free, False)):
        for n in nodes.tolist():
            for kind in (SF, SL):
                need = state.wanted[kind] - state.reserved_total[kind]
                if need > HAIR and (not only_harmless or state.harmless(np.array([n]), kind)[0]):
                    state.reserve(n, kind, need)
            if all(state.wanted[k] - state.reserved_total[k] <= HAIR for k in KINDS):
                return


def place_disturbed(state: FewDisturbedState) -> list[int]:
    """Step 3: breadth-first, each on the first usable node with room. Returns the instances that fit on no node."""
    left = []
    for i in state.breadth_first():
        if state.node[i] >= 0:
            continue
        kind, cpu = state.kind(i), float(state.arrays.cpu_pct[i])
        n = state.first(np.flatnonzero(state.usable[kind]), kind, cpu)
        if n < 0:
            n = _next_room(state, kind, cpu)
        if n < 0:
            left.append(i)
        else:
            state.put(i, n)
    return left


def _next_room(state: FewDisturbedState, kind: int, cpu: float) -> int:
    """Room was reserved by sums; one instance may not fit: try the next tiers, and last the other kind's reserve."""
    used, free = state.used_nodes(), state.free_nodes()
    for nodes in (used[state.harmless(used, kind)], used, free):
        n = state.first(nodes, kind, cpu)
        if n >= 0:
            return n
    return state.first(np.concatenate([used, free]), kind, cpu, keep_reserve=False)


def empty_nodes(state: FewDisturbedState) -> int:
    """Step 4, scale in: move both workers of the least loaded used node to other used nodes; stop when one cannot."""
    emptied = 0
    while True:
        used = state.occupied_nodes()
        if len(used) < 2:
            return emptied
        load = state.held[SL][used] + state.held[SF][used]
        n = int(used[load.argmin()])
        targets = _targets(state, n, used[used != n])
        if targets is None:
            return emptied
        for kind, target in targets.items():
            for i in state.members(n, kind):
                state.put(i, target)
        emptied += 1


def _targets(state: FewDisturbedState, n: int, others: Whole) -> dict[int, int] | None:
    """For each worker of node n the first other node, by rising remainder, with strictly more left than it holds.

    The nodes are sorted once, by the remainders before anything is reserved (Algorithm 3, line 3); whether a
    worker fits is tested after the other worker's reservation (lines 7 and 8).
    """
    found: dict[int, int] = {}
    room = state.capacity[others] - state.held[SL][others] - state.held[SF][others]
    order = np.argsort(room, kind="stable")
    taken = np.zeros(len(others), dtype=np.int64)
    for kind in (SL, SF):
        members = state.members(n, kind)
        if not members:
            continue
        may = (room > state.held[kind][n] + HAIR) & (state.seats(others, kind) - taken >= len(members))
        if not may.any():
            return None
        k = int(order[may[order]][0])
        found[kind] = int(others[k])
        room[k] -= state.held[kind][n]
        taken[k] += len(members)
    return found


def _missing(state: FewDisturbedState, left: list[int]) -> str:
    cpu = float(state.arrays.cpu_pct[left].sum())
    room = float(state.cluster.cpu_left[state.mine].max(initial=0.0))
    return f"{len(left)} instances of {cpu:g} % CPU fit on no node; the most any node has left is {max(0.0, room):g} %"
