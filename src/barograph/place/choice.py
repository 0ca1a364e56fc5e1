"""Moves made by choice, in a cycle in which nothing has to move: fewer nodes, less traffic, for a bounded weight."""

from collections.abc import Iterable

import numpy as np

from barograph.place.board import HAIR
from barograph.place.descend import descend
from barograph.place.layout import Layout
from barograph.place.measure import crossing
from barograph.place.polish import LARGEST, move_weight, puzzle_of

FULL_ENOUGH = 0.9  # a node that took over another's instances by choice keeps some room, or it would soon give them back


def empty_nodes(layout: Layout, among: Iterable[int], budget: float) -> float:
    """Empty nodes whose instances find a place on other used nodes at no more traffic. Returns what the moves weighed."""
    mine = set(among)
    spent = 0.0
    used = np.flatnonzero(layout.population > 0)
    for n in used[np.argsort(layout.population[used], kind="stable")].tolist():
        members = [(c, i) for c in range(len(layout.crews)) for i in _on(layout, c, n)] if layout.population[n] else []
        weight = sum(float(move_weight(layout.crews[c])[i]) for c, i in members)
        if not members or any(c not in mine for c, _ in members) or spent + weight > budget:
            continue
        if _empty(layout, n, members, np.isfinite(budget)):
            spent += weight
    return spent


def _on(layout: Layout, c: int, n: int) -> list[int]:
    return np.flatnonzero(layout.nodes(c) == n).tolist()


def _empty(layout: Layout, n: int, members: list[tuple[int, int]], keep_room: bool) -> bool:
    slots = {(c, i): int(layout.where[c][i]) for c, i in members}
    crews = {c for c, _ in members}
    before = sum(crossing(layout.crews[c], layout.nodes(c)) for c in crews)
    moved = all(_elsewhere(layout, c, i, n, keep_room) for c, i in members)
    after = sum(crossing(layout.crews[c], layout.nodes(c)) for c in crews) if moved else np.inf
    if after <= before + HAIR:
        return True
    for c, i in members:
        if layout.where[c][i] >= 0:
            layout.remove(c, i)
    for (c, i), slot in slots.items():
        layout.put_back(c, i, slot)
    return False


def _elsewhere(layout: Layout, c: int, i: int, n: int, keep_room: bool) -> bool:
    """To the nearest other used node with room."""
    layout.remove(c, i)
    fits = layout.fits(c, i) & (layout.population > 0)
    fits[n] = False
    if keep_room:
        board = layout.board
        fits &= board.cpu_left - layout.crews[c].cpu_pct[i] >= (1 - FULL_ENOUGH) * board.cpu_pct
    toward = layout.near(c).toward(i)
    nodes = np.flatnonzero(fits)
    return any(layout.put(c, i, m) for m in nodes[np.argsort(-toward[nodes], kind="stable")].tolist())


def improve(layout: Layout, budget: float, worth_pct: float) -> None:
    """Per topology, moves within the budget that together save at least so much of its traffic between nodes."""
    for c, crew in enumerate(layout.crews):
        here = layout.nodes(c)
        if crew.size > LARGEST or (here < 0).any() or budget < 1:
            continue
        before = crossing(crew, here)
        if before <= HAIR:
            continue
        nodes = np.flatnonzero(layout.heaps[c].allowed & (layout.population > 0))
        if len(nodes) > LARGEST:
            nodes = np.unique(here)
        puzzle, start = puzzle_of(layout, [c], nodes)
        found = descend(puzzle, start, steps=int(budget), budget=budget)
        saved = before - crossing(crew, nodes[found])
        if saved * 100.0 >= worth_pct * before and layout.rearrange({c: nodes[found]}):
            budget -= float(puzzle.weight[found != start].sum())
