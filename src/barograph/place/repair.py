"""Places for instances that have lost theirs, without moving anybody who runs unless there is no other way."""

import numpy as np

from barograph.place.board import HAIR
from barograph.place.layout import Layout

NODES_TRIED = 64  # when room has to be made for one instance


def place_near(layout: Layout, c: int) -> list[int]:
    """Each instance without a place to where most of its traffic is; ties to nodes in use, then to the tightest.

    Returns those that fit nowhere.
    """
    missing = np.flatnonzero(layout.where[c] < 0)
    if len(missing) == 0:
        return []
    crew, board, near = layout.crews[c], layout.board, layout.near(c)
    left = []
    # the largest first: they have the fewest places to go
    size = np.maximum(
        crew.cpu_pct[missing] / max(float(board.cpu_pct.max()), HAIR),
        crew.memory_mb[missing] / _largest_memory(layout),
    )
    for i in missing[np.argsort(-size, kind="stable")].tolist():
        fits = layout.fits(c, i)
        toward = near.toward(i)
        left_part = np.round((board.cpu_left - crew.cpu_pct[i]) / board.cpu_pct, 1)
        order = np.lexsort((-toward, -left_part, layout.population == 0, ~fits))
        if not any(layout.put(c, i, n) for n in order[: int(fits.sum())].tolist()):
            left.append(i)
    return left


def _largest_memory(layout: Layout) -> float:
    finite = layout.board.memory_mb[np.isfinite(layout.board.memory_mb)]
    return max(float(finite.max(initial=0.0)), HAIR)


def make_room(layout: Layout, c: int, i: int) -> bool:
    """Place an instance by moving one other off a node that finds a place elsewhere. False where none does."""
    crew, board = layout.crews[c], layout.board
    cpu, memory = float(crew.cpu_pct[i]), float(crew.memory_mb[i])
    short_cpu = np.maximum(0.0, cpu - board.cpu_left) / board.cpu_pct
    short_memory = np.maximum(0.0, memory - board.memory_left) / np.maximum(board.memory_mb, HAIR)
    shortage = np.where(layout.heaps[c].allowed, short_cpu + short_memory, np.inf)
    for n in np.argsort(shortage, kind="stable")[:NODES_TRIED].tolist():
        if np.isfinite(shortage[n]) and any(_instead(layout, c, i, n, d, j) for d, j in _others(layout, c, n)):
            return True
    return False


def _others(layout: Layout, c: int, n: int) -> list[tuple[int, int]]:
    """Who is on the node and may be asked to go: no topology of a higher level; stateless and small ones first."""
    found = []
    for d, crew in enumerate(layout.crews):
        if crew.topology.level < layout.crews[c].topology.level:
            continue
        for j in np.flatnonzero(layout.nodes(d) == n).tolist():
            found.append((bool(crew.stateful[j]), float(crew.state_mb[j]), float(crew.cpu_pct[j]), d, j))
    return [(d, j) for *_, d, j in sorted(found)]


def _instead(layout: Layout, c: int, i: int, n: int, d: int, j: int) -> bool:
    """Take j off node n, put i there, and j elsewhere; or leave all as it was."""
    slot = int(layout.where[d][j])
    layout.remove(d, j)
    if layout.put(c, i, n):
        toward = layout.near(d).toward(j)
        fits = np.flatnonzero(layout.fits(d, j))
        for m in fits[np.argsort(-toward[fits], kind="stable")].tolist():
            if layout.put(d, j, m):
                return True
        layout.remove(c, i)
    layout.put_back(d, j, slot)
    return False
