"""CPU of a node that threads beside the instances use: network, garbage collection, the compiler."""

from collections.abc import Sequence

from barograph.model.snapshot import Snapshot

BESIDE_CYCLES = 15  # over which policies sum it up
MOST = 0.5  # more than half of a node is a start-up or a fault, not what instances need
_NOTHING_S = 1e-6


def beside_part(seen: Sequence[Snapshot]) -> dict[str, float]:
    """For each node of the last snapshot, the part of its used CPU that is not used by instances; at most a half.

    These threads work for the instances, so their use rises and falls with that of the instances. It is summed over
    all given snapshots, because one cycle says little.
    """
    used_s: dict[str, float] = {}
    by_instances_s: dict[str, float] = {}
    for then in seen:
        cpu_s = then.metrics.columns["cpu_s"]
        for m in then.node_metrics:
            used_s[m.node] = used_s.get(m.node, 0.0) + m.cpu_used_s
        for position, i in enumerate(then.metrics.instances):
            if (slot := then.placement.get(i)) is not None:
                by_instances_s[slot.node] = by_instances_s.get(slot.node, 0.0) + float(cpu_s[position])
    found = {}
    for node in seen[-1].nodes:
        used, instances = used_s.get(node.name, 0.0), by_instances_s.get(node.name, 0.0)
        beside = max(0.0, used - instances) if instances > 0.0 else 0.0
        found[node.name] = min(MOST, beside / max(used, _NOTHING_S))
    return found
