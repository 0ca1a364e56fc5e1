"""Which nodes, once it is known how many: the resource allocator of SPS and DPS (Chakraborty).

A topology whose number of nodes does not change keeps its nodes. The others first give up nodes, keeping those with
most of their instances; then topologies that need more get free nodes, by level, in the cluster's order. No node is
shared.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from barograph.model import Cycle, Snapshot


def present_nodes(history: Sequence[Cycle], now: Snapshot) -> dict[str, list[str]]:
    """The nodes of each topology, those with most of its instances first.

    These are the nodes last allotted to it; without an allotment, the nodes its instances run on. Dead nodes are left
    out.
    """
    order = {n.name: i for i, n in enumerate(now.nodes)}
    holding: dict[str, Counter[str]] = {t.name: Counter() for t in now.topologies}
    for instance, slot in now.placement.slots.items():
        if instance.topology in holding:
            holding[instance.topology][slot.node] += 1
    allotted: Mapping[str, tuple[str, ...]] = history[-1].allotment.nodes if history else {}
    found = {}
    for name, held in holding.items():
        mine = [n for n in allotted.get(name, tuple(held)) if n in order]
        found[name] = sorted(mine, key=lambda n, held=held: (-held[n], order[n]))  # type: ignore[misc]
    return found


def choose_nodes(
    history: Sequence[Cycle], now: Snapshot, counts: Mapping[str, int]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The nodes of each topology of ``counts``, and the nodes left over. The sum must not exceed all nodes."""
    present = present_nodes(history, now)
    served = sorted((t for t in now.topologies if t.name in counts), key=lambda t: t.level)
    kept: dict[str, list[str]] = {}
    free = {n.name: None for n in now.nodes}  # a dict for its order
    unchanged = [t for t in served if len(present[t.name]) == counts[t.name]]
    for topology in (*unchanged, *(t for t in served if t not in unchanged)):
        mine = [n for n in present[topology.name] if n in free][: counts[topology.name]]
        kept[topology.name] = mine
        for node in mine:
            del free[node]
    for topology in served:
        while len(kept[topology.name]) < counts[topology.name]:
            kept[topology.name].append(next(iter(free)))
            del free[kept[topology.name][-1]]
    order = {n.name: i for i, n in enumerate(now.nodes)}
    return {t.name: tuple(sorted(kept[t.name], key=order.__getitem__)) for t in served}, tuple(free)
