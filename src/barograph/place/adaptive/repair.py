"""Places for instances that have lost theirs; running instances are moved only if there is no other way."""

import numpy as np

from barograph.place.support.cluster_arrays import HAIR
from barograph.place.support.draft import DraftPlacement

NODES_TRIED = 64  # to make room for one instance


def place_near(draft: DraftPlacement, c: int) -> list[int]:
    """Place each instance without a place: on nodes in use first, then on nodes with most CPU left (in steps of a
    tenth), then where most of its traffic is. Returns those that fit on no node.
    """
    missing = np.flatnonzero(draft.where[c] < 0)
    if len(missing) == 0:
        return []
    arrays, cluster, near = draft.topologies[c], draft.cluster, draft.near(c)
    left = []
    # the largest first: they fit on the fewest nodes
    size = np.maximum(
        arrays.cpu_pct[missing] / max(float(cluster.cpu_pct.max()), HAIR),
        arrays.memory_mb[missing] / _largest_memory(draft),
    )
    for i in missing[np.argsort(-size, kind="stable")].tolist():
        fits = draft.fits(c, i)
        toward = near.toward(i)
        left_part = np.round((cluster.cpu_left - arrays.cpu_pct[i]) / cluster.cpu_pct, 1)
        order = np.lexsort((-toward, -left_part, draft.population == 0, ~fits))
        if not any(draft.put(c, i, n) for n in order[: int(fits.sum())].tolist()):
            left.append(i)
    return left


def _largest_memory(draft: DraftPlacement) -> float:
    finite = draft.cluster.memory_mb[np.isfinite(draft.cluster.memory_mb)]
    return max(float(finite.max(initial=0.0)), HAIR)


def make_room(draft: DraftPlacement, c: int, i: int) -> bool:
    """Place an instance by moving one other instance to another node. False if that is not possible."""
    arrays, cluster = draft.topologies[c], draft.cluster
    cpu, memory = float(arrays.cpu_pct[i]), float(arrays.memory_mb[i])
    short_cpu = np.maximum(0.0, cpu - cluster.cpu_left) / cluster.cpu_pct
    short_memory = np.maximum(0.0, memory - cluster.memory_left) / np.maximum(cluster.memory_mb, HAIR)
    shortage = np.where(draft.heaps[c].allowed, short_cpu + short_memory, np.inf)
    for n in np.argsort(shortage, kind="stable")[:NODES_TRIED].tolist():
        if np.isfinite(shortage[n]) and any(_instead(draft, c, i, n, d, j) for d, j in _others(draft, c, n)):
            return True
    return False


def _others(draft: DraftPlacement, c: int, n: int) -> list[tuple[int, int]]:
    """Instances on the node that may be moved: none of a higher level; stateless and small ones first."""
    found = []
    for d, arrays in enumerate(draft.topologies):
        if arrays.topology.level < draft.topologies[c].topology.level:
            continue
        for j in np.flatnonzero(draft.nodes(d) == n).tolist():
            found.append((bool(arrays.stateful[j]), float(arrays.state_mb[j]), float(arrays.cpu_pct[j]), d, j))
    return [(d, j) for *_, d, j in sorted(found)]


def _instead(draft: DraftPlacement, c: int, i: int, n: int, d: int, j: int) -> bool:
    """Move j from node n to another node and put i on n; or change nothing."""
    slot = int(draft.where[d][j])
    draft.remove(d, j)
    if draft.put(c, i, n):
        toward = draft.near(d).toward(j)
        fits = np.flatnonzero(draft.fits(d, j))
        for m in fits[np.argsort(-toward[fits], kind="stable")].tolist():
            if draft.put(d, j, m):
                return True
        draft.remove(c, i)
    draft.put_back(d, j, slot)
    return False
