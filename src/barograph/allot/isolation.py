"""Dedicated machines: Storm's isolation scheduler. A machine serves one isolated topology only.

A topology's workers are distributed over its machines as evenly as possible, largest share first, each to the free
machine with most slots; a machine that already holds exactly one such share is kept. A share that fits on no machine
stays unscheduled, and then no topology that is not isolated is scheduled in that cycle: they all wait, which is what
the papers compare with. Otherwise they share the remaining machines.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Snapshot, Topology


@dataclass(frozen=True)
class Isolation:
    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand) -> Allotment:  # noqa: ARG002
        alone = [t for t in now.topologies if t.isolate_nodes]
        missing = {t.name: shares_of(t) for t in alone}
        took: dict[str, dict[str, int]] = {t.name: {} for t in alone}
        free = [n.name for n in now.nodes]
        for node, topology, workers in _matching(now, missing):
            missing[topology].remove(workers)
            took[topology][node] = workers
            free.remove(node)
        slots = {n.name: n.slots for n in now.nodes}
        for t in alone:
            for share in tuple(missing[t.name]):
                roomiest = max(free, key=slots.__getitem__, default=None)
                if roomiest is not None and slots[roomiest] >= share:
                    missing[t.name].remove(share)
                    took[t.name][roomiest] = share
                    free.remove(roomiest)
        return _allotment(now, took, missing, free)


def shares_of(topology: Topology) -> list[int]:
    """Workers of each machine, largest first: 5 on 2 machines are 3 + 2. Without a declared number, one per machine."""
    workers = topology.workers or topology.isolate_nodes
    base, more = divmod(workers, topology.isolate_nodes)
    return [w for w in (base + (i < more) for i in range(topology.isolate_nodes)) if w > 0]


def _matching(now: Snapshot, missing: dict[str, list[int]]) -> list[tuple[str, str, int]]:
    """Machines that already run exactly one share of one isolated topology, and nothing else."""
    users: dict[str, Counter[str]] = {}
    for topology, slot in {(i.topology, s) for i, s in now.placement.slots.items()}:
        users.setdefault(slot.node, Counter())[topology] += 1
    left = {name: list(shares) for name, shares in missing.items()}
    found = []
    for node in now.nodes:
        held = users.get(node.name, Counter())
        for topology, workers in held.items() if len(held) == 1 else ():
            if workers in left.get(topology, ()):
                left[topology].remove(workers)
                found.append((node.name, topology, workers))
    return found


def _allotment(
    now: Snapshot, took: dict[str, dict[str, int]], missing: dict[str, list[int]], free: list[str]
) -> Allotment:
    short = any(missing.values())
    order = {n.name: i for i, n in enumerate(now.nodes)}
    nodes = {t: tuple(sorted(mine, key=order.__getitem__)) for t, mine in took.items()}
    workers = {t: tuple(took[t][n] for n in mine) for t, mine in nodes.items()}
    reasons = [
        Reason(
            t,
            ReasonCode.ISOLATION_SHORT if missing[t] else ReasonCode.ISOLATED,
            "isolated" if not missing[t] else f"no machine has room for its shares of {missing[t]} workers",
            {"machines": float(len(nodes[t])), "workers_missing": float(sum(missing[t]))},
        )
        for t in took
    ]
    starved = [t for t, mine in nodes.items() if not mine]
    for t in now.topologies:
        if t.name in took:
            continue
        if short or not free:
            nodes[t.name] = ()
            starved.append(t.name)
            why = "waits until every isolated topology has its machines" if short else "all machines are isolated"
            code = ReasonCode.WAITS_FOR_ISOLATED if short else ReasonCode.ALL_NODES_ISOLATED
            reasons.append(Reason(t.name, code, why, {"free_machines": float(len(free))}))
    idle = tuple(free) if short or len(took) == len(now.topologies) else ()
    return Allotment(nodes, tuple(starved), idle, tuple(reasons), workers=workers)
