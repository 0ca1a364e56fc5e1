"""Moves made by choice, in a cycle in which nothing has to move: fewer nodes, less traffic, for a bounded weight."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from barograph.place.board import HAIR
from barograph.place.descend import descend
from barograph.place.layout import Layout
from barograph.place.measure import crossing
from barograph.place.polish import LARGEST, move_weight, puzzle_of

# A node that took over another's instances by choice keeps some room, or it would soon give them back.
FULL_ENOUGH = 0.9
LARGEST_CREW = 24  # instances of a node that is worth emptying
TRIES = 4000  # instances moved in vain, before no further node is tried


def empty_nodes(layout: Layout, among: Iterable[int], budget: float) -> float:
    """Empty nodes whose instances fit on other used nodes at no more traffic. Returns what the moves weighed."""
    mine = set(among)
    weights = {c: move_weight(layout.crews[c]) for c in mine}
    members: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for c in range(len(layout.crews)):
        for i, n in enumerate(layout.nodes(c).tolist()):
            members[n].append((c, i))
    spent, in_vain = 0.0, 0
    used = np.flatnonzero((layout.population > 0) & (layout.population <= LARGEST_CREW))
    for n in used[np.argsort(layout.population[used], kind="stable")].tolist():
        here = members[n]
        if in_vain >= TRIES or len(here) > LARGEST_CREW:
            break
        if any(c not in mine for c, _ in here):
            continue
        weight = sum(float(weights[c][i]) for c, i in here)
        if spent + weight > budget:
            continue
        tried = _empty(layout, n, here, np.isfinite(budget))
        if tried == 0:
            spent += weight
            for c, i in members.pop(n):
                members[int(layout.board.slot_node[layout.where[c][i]])].append((c, i))
        else:
            in_vain += tried
    return spent


def _empty(layout: Layout, n: int, members: list[tuple[int, int]], keep_room: bool) -> int:
    """All of them elsewhere, if that costs no traffic in sum: 0. Else all is as it was: how many were tried."""
    slots = {(c, i): int(layout.where[c][i]) for c, i in members}
    saved, moved = 0.0, list[tuple[int, int]]()
    largest_first = sorted(members, key=lambda m: -float(layout.crews[m[0]].cpu_pct[m[1]]))
    for c, i in largest_first:
        gain = _elsewhere(layout, c, i, n, keep_room)
        if gain is None:
            layout.put_back(c, i, slots[c, i])
            break
        saved += gain
        moved.append((c, i))
    if len(moved) == len(members) and saved >= -HAIR:
        return 0
    for c, i in moved:
        layout.remove(c, i)
    for c, i in moved:
        layout.put_back(c, i, slots[c, i])
    return len(moved) + 1


def _elsewhere(layout: Layout, c: int, i: int, n: int, keep_room: bool) -> float | None:
    """To the nearest other used node with room: what traffic that saves; None, and i is nowhere, if there is none."""
    layout.remove(c, i)
    fits = layout.fits(c, i) & (layout.population > 0)
    fits[n] = False
    if keep_room:
        board = layout.board
        fits &= board.cpu_left - layout.crews[c].cpu_pct[i] >= (1 - FULL_ENOUGH) * board.cpu_pct
    nodes = np.flatnonzero(fits)
    if len(nodes) == 0:
        return None
    toward = layout.near(c).toward(i)
    for m in nodes[np.argsort(-toward[nodes], kind="stable")].tolist():
        if layout.put(c, i, m):
            return float(toward[m] - toward[n])
    return None


def improve(layout: Layout, among: Iterable[int], budget: float, worth_pct: float) -> None:
    """Per topology, moves within the budget that together save at least so much of its traffic between nodes."""
    for c in among:
        crew, here = layout.crews[c], layout.nodes(c)
        if crew.size > LARGEST or (here < 0).any() or budget < 1:
            continue
        before = crossing(crew, here)
        if before <= HAIR:
            continue
        nodes = np.flatnonzero(layout.heaps[c].allowed & (layout.population > 0))
        if len(nodes) > LARGEST:
            nodes = np.unique(here)
        puzzle, start = puzzle_of(layout, [c], nodes)
        found = descend(puzzle, start, steps=int(min(budget, 4 * crew.size)), budget=budget)
        saved = before - crossing(crew, nodes[found])
        if saved * 100.0 >= worth_pct * before and layout.rearrange({c: nodes[found]}):
            budget -= float(puzzle.weight[found != start].sum())
