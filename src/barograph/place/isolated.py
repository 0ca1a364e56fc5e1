"""Even, on machines of one's own: workers that the isolation scheduler found no machine for stay unplaced.

Storm deals instance i to worker i mod W before it looks for machines; where only some of the W workers have one, the
instances of the others wait. That is what the papers compare with, so it is kept.
"""

from barograph.model import Allotment, Demand, Instance, Placement, Refusal, Snapshot, Topology
from barograph.place import PlaceDecision
from barograph.place.even import even


def isolated(now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
    """The Placer that goes with the isolation allotter."""
    found = even(now, demand, allotment)
    waiting: dict[Instance, str] = {}
    for topology in now.topologies:
        counts = allotment.workers.get(topology.name)
        workers = topology.workers or topology.isolate_nodes
        if counts is not None and 0 < sum(counts) < workers:
            why = f"{topology.name} has machines for {sum(counts)} of its {workers} workers"
            everyone = _instances(topology, demand)
            waiting |= {i: why for k, i in enumerate(everyone) if k % workers >= sum(counts)}
    if not waiting:
        return found
    named = {refusal.what for refusal in found.unplaced}
    slots = {i: slot for i, slot in found.placement.slots.items() if i not in waiting}
    more = tuple(Refusal(str(i), why) for i, why in waiting.items() if str(i) not in named)
    return PlaceDecision(Placement(slots), (*found.unplaced, *more), found.reasons)


def _instances(topology: Topology, demand: Demand) -> list[Instance]:
    """In the order of Storm's task ids, as many as are demanded."""
    found = []
    for operator in topology.operators:
        asked = demand.of(topology.name, operator.name)
        count = operator.parallelism if asked is None else asked.parallelism
        found += [Instance(topology.name, operator.name, k) for k in range(count)]
    return found
