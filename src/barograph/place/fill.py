"""A topology that runs nowhere yet, node by node: each node is grown from a seed, by who belongs there most.

Belonging is relative: the share of an instance's own traffic that would stay on the node. Counted in rows, a node would
draw the few busy instances of one operator and leave the rest of their partners alone elsewhere; counted in shares,
even traffic between two operators gives every node both of them in proportion, which keeps most rows inside (the sum of
s * t over nodes of s + t instances is then largest). Ties go to the heaviest. The next node is the one that takes the
largest part of what is left; the tightest one already in use where several would take it all.
"""

import numpy as np

from barograph.place.board import HAIR, Real, Whole
from barograph.place.crew import Crew
from barograph.place.layout import Layout
from barograph.place.links import links_of
from barograph.place.nearness import total_traffic
from barograph.place.pairing import Links


def fill(layout: Layout, c: int) -> list[int]:
    """Place all instances of a crew that have no place yet. Returns those that fit nowhere."""
    crew = layout.crews[c]
    waiting = layout.where[c] < 0
    traffic = total_traffic(crew)
    share = 1.0 / np.where(traffic > 0, traffic, np.inf)
    heavy = 1e-9 * traffic / max(float(traffic.max(initial=0.0)), HAIR)
    links = links_of(crew)
    tried: set[int] = set()
    while waiting.any():
        left = np.flatnonzero(waiting)
        node = _next_node(layout, c, crew, left, tried)
        if node < 0:
            break
        tried.add(node)
        belongs = np.where(waiting, heavy, -np.inf)
        for i in np.flatnonzero(layout.nodes(c) == node).tolist():
            _draw(belongs, share, links, i)
        _grow(layout, c, node, belongs, share, links)
        waiting = layout.where[c] < 0
    return [i for i in np.flatnonzero(waiting).tolist() if not _anywhere(layout, c, i)]


def _draw(belongs: Real, share: Real, links: Links, i: int) -> None:
    """Instance i is on the node: those it exchanges rows with belong there more."""
    for others, rows in links(i):
        belongs[others] += rows * share[others]


def _grow(layout: Layout, c: int, node: int, belongs: Real, share: Real, links: Links) -> None:
    crew, board = layout.crews[c], layout.board
    while True:
        i = int(belongs.argmax())
        if belongs[i] == -np.inf:
            return
        cpu, memory = float(board.cpu_left[node]) + HAIR, float(board.memory_left[node]) + HAIR
        if crew.cpu_pct[i] > cpu or crew.memory_mb[i] > memory:
            belongs[(crew.cpu_pct > cpu) | (crew.memory_mb > memory)] = -np.inf  # it only gets less
            continue
        placed = layout.put(c, i, node)
        belongs[i] = -np.inf
        if placed:
            _draw(belongs, share, links, i)


def _next_node(layout: Layout, c: int, crew: Crew, waiting: Whole, tried: set[int]) -> int:
    """The node that takes the largest part of what waits; -1 where none takes anything."""
    cpu, memory = layout.room(c)
    need_cpu, need_memory = float(crew.cpu_pct[waiting].sum()), float(crew.memory_mb[waiting].sum())
    part = np.minimum(1.0, (cpu + HAIR) / max(need_cpu, HAIR))
    part = np.minimum(part, (np.minimum(memory, 1e18) + HAIR) / max(need_memory, HAIR))
    part[list(tried)] = -1.0
    part[~layout.heaps[c].allowed] = -1.0
    best = float(part.max(initial=-1.0))
    if best <= 0.0:
        return -1
    may = part >= best - 1e-9
    # the tightest of those in use; of fresh ones the first
    slack = np.where(layout.population > 0, cpu, np.inf if (may & (layout.population > 0)).any() else 0.0)
    return int(np.where(may, slack, np.inf).argmin())


def _anywhere(layout: Layout, c: int, i: int) -> bool:
    """Any node that still takes it: the one with most in use already."""
    nodes = np.flatnonzero(layout.fits(c, i))
    fullest_first = nodes[np.argsort(-layout.population[nodes], kind="stable")].tolist()
    return any(layout.put(c, i, node) for node in fullest_first)
