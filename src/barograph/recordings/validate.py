"""Whether a placement of a recorded cluster keeps its policy's own rules. It counts again from the recording.

It shares no code with the placers, so that it finds their mistakes.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barograph.model import Instance, Node, Placement, Topology
from barograph.recordings.read import Recording

HAIR = 1e-6


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a policy beyond those of all: one place an instance, existing slots, one topology a slot, enough seats.

    alpha: at most M(alpha) instances per worker, and exactly min(W, E) workers. gamma: T-Storm's bound per node.
    nodes: topology -> the nodes it may use, where it may not use all.
    """

    cpu: bool = False
    memory: bool = False
    heap: bool = False
    whole: bool = False
    alpha: float | None = None
    gamma: float | None = None
    workers_per_node: int | None = None
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def violations(recording: Recording, placed: Placement, unplaced: Iterable[tuple[str, str]], rules: Rules) -> list[str]:
    """Every rule that is broken, one sentence each. unplaced: (instance, reason)."""
    reasons = dict(unplaced)
    known = {str(i): i for t in recording.topologies for i in t.instances()}
    found = [f"{i} is placed but does not exist" for i in placed if str(i) not in known]
    found += [f"{i} has neither a place nor a reason" for i in known if known[i] not in placed and not reasons.get(i)]
    found += [f"{i} is placed and refused" for i in reasons if i in known and known[i] in placed]
    found += _slots(recording, placed)
    found += _nodes(recording, placed, rules)
    for topology in recording.topologies:
        found += _topology(recording, topology, placed, rules)
    return found


def _slots(recording: Recording, placed: Placement) -> list[str]:
    nodes = {n.name: n for n in recording.nodes}
    found = []
    owner: dict[str, str] = {}
    count: dict[str, int] = defaultdict(int)
    for instance, slot in placed.slots.items():
        node = nodes.get(slot.node)
        if node is None or slot.index >= node.slots:
            found.append(f"{instance} is in {slot}, which does not exist")
            continue
        if owner.setdefault(str(slot), instance.topology) != instance.topology:
            found.append(f"slot {slot} holds both {owner[str(slot)]} and {instance.topology}")
        count[str(slot)] += 1
        if node.seats is not None and count[str(slot)] == node.seats + 1:
            found.append(f"slot {slot} holds more than its {node.seats} seats")
    return found


def _asks(recording: Recording) -> dict[tuple[str, str], tuple[float, float]]:
    """(topology, operator) -> CPU in per cent of a core and memory in MB of one instance."""
    return {
        (t.name, o.name): (float(o.cpu_pct or 0.0), float(o.memory_mb or 0.0))
        for t in recording.topologies
        for o in t.operators
    }


def loads(recording: Recording, placed: Placement) -> dict[str, tuple[float, float]]:
    """Node -> CPU and memory that its instances ask for; nodes without instances are left out."""
    asks = _asks(recording)
    cpu: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    for instance, slot in placed.slots.items():
        one = asks[instance.topology, instance.operator]
        cpu[slot.node] += one[0]
        memory[slot.node] += one[1]
    return {name: (cpu[name], memory[name]) for name in cpu}


def overcommitted(node: Node, load: tuple[float, float]) -> bool:
    return load[0] > node.cpu_pct + HAIR or (node.memory_mb is not None and load[1] > node.memory_mb + HAIR)


def _nodes(recording: Recording, placed: Placement, rules: Rules) -> list[str]:
    found = []
    held = loads(recording, placed)
    for node in recording.nodes:
        cpu, memory = held.get(node.name, (0.0, 0.0))
        if rules.cpu and cpu > node.cpu_pct + HAIR:
            found.append(f"node {node.name} holds {cpu:g} % CPU of {node.cpu_pct:g} %")
        if rules.memory and node.memory_mb is not None and memory > node.memory_mb + HAIR:
            found.append(f"node {node.name} holds {memory:g} MB of {node.memory_mb:g} MB")
    if rules.gamma is not None:
        total = sum(o.parallelism for t in recording.topologies for o in t.operators)
        most = math.floor(rules.gamma * math.ceil(total / len(recording.nodes)) + HAIR)
        count: dict[str, int] = defaultdict(int)
        for slot in placed.slots.values():
            count[slot.node] += 1
        found += [f"node {n} holds {c} instances, above {most}" for n, c in count.items() if c > most]
    return found


def _topology(recording: Recording, topology: Topology, placed: Placement, rules: Rules) -> list[str]:
    mine: dict[Instance, tuple[str, int]] = {
        i: (s.node, s.index) for i, s in placed.slots.items() if i.topology == topology.name
    }
    size = sum(o.parallelism for o in topology.operators)
    workers: dict[tuple[str, int], list[Instance]] = defaultdict(list)
    for instance, slot in mine.items():
        workers[slot].append(instance)
    name = topology.name
    found = []
    if rules.whole and len(mine) not in (0, size):
        found.append(f"{name} is placed in part: {len(mine)} of {size}")
    if name in rules.nodes:
        outside = {node for node, _ in workers} - set(rules.nodes[name])
        found += [f"{name} is on node {node}, which is not among its own" for node in sorted(outside)]
    if rules.workers_per_node is not None:
        count: dict[str, int] = defaultdict(int)
        for node, _ in workers:
            count[node] += 1
        found += [f"{name} has {c} workers on node {n}" for n, c in count.items() if c > rules.workers_per_node]
    if rules.heap and topology.max_heap_mb:
        asks = _asks(recording)
        for (node, index), held in workers.items():
            heap = sum(asks[i.topology, i.operator][1] for i in held)
            if heap > topology.max_heap_mb + HAIR:
                found.append(f"worker {node}/{index} of {name} holds {heap:g} MB of {topology.max_heap_mb:g} MB")
    if rules.alpha is not None and topology.workers is not None and mine:
        found += _by_alpha(topology, size, len(mine), workers, rules.alpha)
    return found


def _by_alpha(
    topology: Topology, size: int, placed: int, workers: Mapping[tuple[str, int], list[Instance]], alpha: float
) -> list[str]:
    wanted = min(topology.workers or size, size)
    least = -(-size // wanted)
    most = math.floor(least + alpha * (size - wanted + 1 - least) + 0.5)
    largest = max(len(held) for held in workers.values())
    found = []
    if largest > most:
        found.append(f"a worker of {topology.name} holds {largest} instances, above M = {most}")
    if placed == size and len(workers) != wanted:
        found.append(f"{topology.name} runs on {len(workers)} workers instead of {wanted}")
    return found
