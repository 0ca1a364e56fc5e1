"""Moves made by choice, in a cycle in which nothing has to move: fewer nodes, less traffic, for a bounded weight."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from barograph.place.board import HAIR, Whole
from barograph.place.descend import Puzzle, descend
from barograph.place.layout import Layout
from barograph.place.measure import crossing, sent_rows_s
from barograph.place.polish import LARGEST, move_weight, puzzle_of, split_by_crew

LARGEST_CREW = 24  # instances of a node that is worth emptying
IN_VAIN = 8  # nodes that could not be emptied, before no further one is tried
TRIES = 4000  # instances moved in vain, before no further node is tried


def empty_nodes(layout: Layout, among: Iterable[int], budget: float) -> float:
    """Empty nodes whose instances fit on other used nodes, the least loaded first. Returns what the moves weighed.

    All moves share one pause, so others may be packed anew to make room, as far as the budget goes.
    """
    mine = [c for c in among if (layout.where[c] >= 0).all()]
    if not mine or sum(layout.crews[c].size for c in mine) > LARGEST:
        return _empty_one_by_one(layout, among, budget)
    strangers = np.zeros(len(layout.population), dtype=np.int64)
    for c in range(len(layout.crews)):
        if c not in mine:
            here = layout.nodes(c)
            strangers += np.bincount(here[here >= 0], minlength=len(strangers))
    nodes = np.flatnonzero(layout.population > 0)
    puzzle, start = puzzle_of(layout, mine, nodes)
    best, spent = start, 0.0
    load = np.bincount(start, weights=puzzle.cpu, minlength=len(nodes)) / np.maximum(layout.board.cpu_pct[nodes], HAIR)
    closed = np.zeros(len(nodes), dtype=np.bool_)
    in_vain = 0
    for n in np.argsort(load, kind="stable").tolist():
        if strangers[nodes[n]] or in_vain >= IN_VAIN or closed.sum() >= len(nodes) - 1:
            continue
        closed[n] = True
        found = _packed(puzzle, best, closed)
        weight = np.inf if found is None else float(puzzle.weight[found != start].sum())
        if found is None or weight > budget:
            closed[n], in_vain = False, in_vain + 1
            continue
        best, spent = found, weight
    if spent and layout.rearrange(split_by_crew(layout, mine, nodes[best])):
        return spent
    return 0.0


def _packed(p: Puzzle, node: Whole, closed: NDArray[np.bool_]) -> Whole | None:
    """Everything on nodes that are not closed: the largest first, each where it is if it fits, else the tightest."""
    found = np.full(len(node), -1, dtype=np.int64)
    cpu_left, memory_left, seats_left = p.left(found)
    for i in np.argsort(-p.cpu, kind="stable").tolist():
        fits = p.may[i] & ~closed & (p.cpu[i] <= cpu_left + HAIR) & (p.memory[i] <= memory_left + HAIR)
        fits &= seats_left > 0
        if not fits.any():
            return None
        n = int(node[i]) if fits[node[i]] else int(np.where(fits, cpu_left, np.inf).argmin())
        found[i] = n
        cpu_left[n] -= p.cpu[i]
        memory_left[n] -= p.memory[i]
        seats_left[n] -= 1
    return found


def _empty_one_by_one(layout: Layout, among: Iterable[int], budget: float) -> float:
    """The same for large clusters: only the instances of the node that is emptied move."""
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
        tried = _empty(layout, n, here)
        if tried == 0:
            spent += weight
            for c, i in members.pop(n):
                members[int(layout.board.slot_node[layout.where[c][i]])].append((c, i))
        else:
            in_vain += tried
    return spent


def _empty(layout: Layout, n: int, members: list[tuple[int, int]]) -> int:
    """All of them elsewhere: 0. Else all is as it was: how many were tried."""
    slots = {(c, i): int(layout.where[c][i]) for c, i in members}
    moved = list[tuple[int, int]]()
    largest_first = sorted(members, key=lambda m: -float(layout.crews[m[0]].cpu_pct[m[1]]))
    for c, i in largest_first:
        if not _elsewhere(layout, c, i, n):
            layout.put_back(c, i, slots[c, i])
            break
        moved.append((c, i))
    if len(moved) == len(members):
        return 0
    for c, i in moved:
        layout.remove(c, i)
    for c, i in moved:
        layout.put_back(c, i, slots[c, i])
    return len(moved) + 1


def _elsewhere(layout: Layout, c: int, i: int, n: int) -> bool:
    """To the nearest other used node with room; False, and i is nowhere, if there is none."""
    layout.remove(c, i)
    fits = layout.fits(c, i) & (layout.population > 0)
    fits[n] = False
    nodes = np.flatnonzero(fits)
    toward = layout.near(c).toward(i)
    return any(layout.put(c, i, m) for m in nodes[np.argsort(-toward[nodes], kind="stable")].tolist())


def improve(
    layout: Layout, c: int, budget: float, worth_pct: float, enough: Callable[[float], bool] = lambda _: True
) -> float:
    """Moves of a topology within the budget that save at least so much of its traffic between nodes, and enough.

    enough: gets the part of all its rows that would no longer go between nodes. Returns what is left of the budget.
    """
    crew, here = layout.crews[c], layout.nodes(c)
    if crew.size > LARGEST or (here < 0).any() or budget < 1:
        return budget
    before = crossing(crew, here)
    if before <= HAIR or not enough(before / sent_rows_s(crew)):
        return budget
    nodes = np.flatnonzero(layout.heaps[c].allowed & (layout.population > 0))
    if len(nodes) > LARGEST:
        nodes = np.unique(here)
    puzzle, start = puzzle_of(layout, [c], nodes)
    found = descend(puzzle, start, steps=int(min(budget, 4 * crew.size)), budget=budget)
    saved = before - crossing(crew, nodes[found])
    worth = saved * 100.0 >= worth_pct * before and enough(saved / sent_rows_s(crew))
    if worth and layout.rearrange({c: nodes[found]}):
        return budget - float(puzzle.weight[found != start].sum())
    return budget
