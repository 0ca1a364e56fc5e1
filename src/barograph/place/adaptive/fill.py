"""Places a topology that does not run yet, node by node: a node is filled with the instances of highest affinity to it.

Affinity is relative: the share of an instance's own traffic that would stay on the node. Counted in rows, a node would
attract the few busy instances of one operator, separated from most of the instances they exchange rows with; counted in
shares, even traffic between two operators gives every node both of them in proportion, which keeps most rows inside
(the sum of s * t over nodes of s + t instances is then largest). Ties go to the instance with most traffic. The next
node is the one that can take the largest part of what is left; if several can take all of it, the fullest node in use.
"""

import numpy as np

from barograph.place.support.cluster_arrays import HAIR, Real, Whole
from barograph.place.support.draft import DraftPlacement
from barograph.place.support.links import links_of
from barograph.place.support.nearness import total_traffic
from barograph.place.support.pairs import Links
from barograph.place.support.topology_arrays import TopologyArrays


def fill(draft: DraftPlacement, c: int) -> list[int]:
    """Place all instances of a topology that have no place yet. Returns those that fit on no node."""
    arrays = draft.topologies[c]
    waiting = draft.where[c] < 0
    traffic = total_traffic(arrays)
    share = 1.0 / np.where(traffic > 0, traffic, np.inf)
    heavy = 1e-9 * traffic / max(float(traffic.max(initial=0.0)), HAIR)
    links = links_of(arrays)
    tried: set[int] = set()
    while waiting.any():
        left = np.flatnonzero(waiting)
        node = _next_node(draft, c, arrays, left, tried)
        if node < 0:
            break
        tried.add(node)
        belongs = np.where(waiting, heavy, -np.inf)
        for i in np.flatnonzero(draft.nodes(c) == node).tolist():
            _draw(belongs, share, links, i)
        _grow(draft, c, node, belongs, share, links)
        waiting = draft.where[c] < 0
    return [i for i in np.flatnonzero(waiting).tolist() if not _anywhere(draft, c, i)]


def _draw(belongs: Real, share: Real, links: Links, i: int) -> None:
    """Instance i is on the node: raise the affinity of the instances it exchanges rows with."""
    for others, rows in links(i):
        belongs[others] += rows * share[others]


def _grow(draft: DraftPlacement, c: int, node: int, belongs: Real, share: Real, links: Links) -> None:
    arrays, cluster = draft.topologies[c], draft.cluster
    while True:
        i = int(belongs.argmax())
        if belongs[i] == -np.inf:
            return
        cpu, memory = float(cluster.cpu_left[node]) + HAIR, float(cluster.memory_left[node]) + HAIR
        if arrays.cpu_pct[i] > cpu or arrays.memory_mb[i] > memory:
            belongs[(arrays.cpu_pct > cpu) | (arrays.memory_mb > memory)] = -np.inf  # what is left only decreases
            continue
        placed = draft.put(c, i, node)
        belongs[i] = -np.inf
        if placed:
            _draw(belongs, share, links, i)


def _next_node(draft: DraftPlacement, c: int, arrays: TopologyArrays, waiting: Whole, tried: set[int]) -> int:
    """The node that can take the largest part of the waiting instances; -1 if none can take any."""
    cpu, memory = draft.room(c)
    need_cpu, need_memory = float(arrays.cpu_pct[waiting].sum()), float(arrays.memory_mb[waiting].sum())
    part = np.minimum(1.0, (cpu + HAIR) / max(need_cpu, HAIR))
    part = np.minimum(part, (np.minimum(memory, 1e18) + HAIR) / max(need_memory, HAIR))
    part[list(tried)] = -1.0
    part[~draft.heaps[c].allowed] = -1.0
    best = float(part.max(initial=-1.0))
    if best <= 0.0:
        return -1
    may = part >= best - 1e-9
    # of the nodes in use the fullest; of unused nodes the first
    slack = np.where(draft.population > 0, cpu, np.inf if (may & (draft.population > 0)).any() else 0.0)
    return int(np.where(may, slack, np.inf).argmin())


def _anywhere(draft: DraftPlacement, c: int, i: int) -> bool:
    """Try every node on which it still fits, those with most instances first."""
    nodes = np.flatnonzero(draft.fits(c, i))
    fullest_first = nodes[np.argsort(-draft.population[nodes], kind="stable")].tolist()
    return any(draft.put(c, i, node) for node in fullest_first)
