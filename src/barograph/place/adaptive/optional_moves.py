"""Optional moves, which nothing forces: fewer nodes or less traffic, for moves of a bounded total weight."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from barograph.place.adaptive.descend import Puzzle, descend
from barograph.place.adaptive.polish import LARGEST, move_weight, puzzle_of, split_by_topology
from barograph.place.support.cluster_arrays import HAIR, Whole
from barograph.place.support.cost import crossing, sent_rows_s
from barograph.place.support.draft import DraftPlacement

LARGEST_TO_EMPTY = 24  # most instances on a node that is tried
IN_VAIN = 8  # stop after this number of nodes that could not be emptied
TRIES = 4000  # stop after this number of instances moved without success


def empty_nodes(draft: DraftPlacement, among: Iterable[int], budget: float) -> float:
    """Empty nodes whose instances fit on other used nodes, the least loaded first. Returns what the moves weighed.

    All moves share one pause, so other instances may be rearranged to make room, within the budget.
    """
    mine = [c for c in among if (draft.where[c] >= 0).all()]
    if not mine or sum(draft.topologies[c].size for c in mine) > LARGEST:
        return _empty_one_by_one(draft, among, budget)
    strangers = np.zeros(len(draft.population), dtype=np.int64)
    for c in range(len(draft.topologies)):
        if c not in mine:
            here = draft.nodes(c)
            strangers += np.bincount(here[here >= 0], minlength=len(strangers))
    nodes = np.flatnonzero(draft.population > 0)
    puzzle, start = puzzle_of(draft, mine, nodes)
    best, spent = start, 0.0
    load = np.bincount(start, weights=puzzle.cpu, minlength=len(nodes)) / np.maximum(draft.cluster.cpu_pct[nodes], HAIR)
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
    if spent and draft.rearrange(split_by_topology(draft, mine, nodes[best])):
        return spent
    return 0.0


def _packed(p: Puzzle, node: Whole, closed: NDArray[np.bool_]) -> Whole | None:
    """All items on nodes that are not closed: largest first, each on its own node if it fits, else on the fullest."""
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


def _empty_one_by_one(draft: DraftPlacement, among: Iterable[int], budget: float) -> float:
    """The same for large clusters: only the instances of the node that is emptied move."""
    mine = set(among)
    weights = {c: move_weight(draft.topologies[c]) for c in mine}
    members: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for c in range(len(draft.topologies)):
        for i, n in enumerate(draft.nodes(c).tolist()):
            members[n].append((c, i))
    spent, in_vain = 0.0, 0
    used = np.flatnonzero((draft.population > 0) & (draft.population <= LARGEST_TO_EMPTY))
    for n in used[np.argsort(draft.population[used], kind="stable")].tolist():
        here = members[n]
        if in_vain >= TRIES or len(here) > LARGEST_TO_EMPTY:
            break
        if any(c not in mine for c, _ in here):
            continue
        weight = sum(float(weights[c][i]) for c, i in here)
        if spent + weight > budget:
            continue
        tried = _empty(draft, n, here)
        if tried == 0:
            spent += weight
            for c, i in members.pop(n):
                members[int(draft.cluster.slot_node[draft.where[c][i]])].append((c, i))
        else:
            in_vain += tried
    return spent


def _empty(draft: DraftPlacement, n: int, members: list[tuple[int, int]]) -> int:
    """Move all of them to other nodes and return 0; else undo and return how many were tried."""
    slots = {(c, i): int(draft.where[c][i]) for c, i in members}
    moved = list[tuple[int, int]]()
    largest_first = sorted(members, key=lambda m: -float(draft.topologies[m[0]].cpu_pct[m[1]]))
    for c, i in largest_first:
        if not _elsewhere(draft, c, i, n):
            draft.put_back(c, i, slots[c, i])
            break
        moved.append((c, i))
    if len(moved) == len(members):
        return 0
    for c, i in moved:
        draft.remove(c, i)
    for c, i in moved:
        draft.put_back(c, i, slots[c, i])
    return len(moved) + 1


def _elsewhere(draft: DraftPlacement, c: int, i: int, n: int) -> bool:
    """Move i to the nearest other used node with room; False if there is none, and then i has no node."""
    draft.remove(c, i)
    fits = draft.fits(c, i) & (draft.population > 0)
    fits[n] = False
    nodes = np.flatnonzero(fits)
    toward = draft.near(c).toward(i)
    return any(draft.put(c, i, m) for m in nodes[np.argsort(-toward[nodes], kind="stable")].tolist())


def improve(
    draft: DraftPlacement, c: int, budget: float, worth_pct: float, enough: Callable[[float], bool] = lambda _: True
) -> float:
    """Moves of a topology within the budget, if they save worth_pct of its traffic between nodes and ``enough`` agrees.

    enough: called with the part of all its rows that would no longer cross nodes. Returns the rest of the budget.
    """
    arrays, here = draft.topologies[c], draft.nodes(c)
    if arrays.size > LARGEST or (here < 0).any() or budget < 1:
        return budget
    before = crossing(arrays, here)
    if before <= HAIR or not enough(before / sent_rows_s(arrays)):
        return budget
    nodes = np.flatnonzero(draft.heaps[c].allowed & (draft.population > 0))
    if len(nodes) > LARGEST:
        nodes = np.unique(here)
    puzzle, start = puzzle_of(draft, [c], nodes)
    found = descend(puzzle, start, steps=int(min(budget, 4 * arrays.size)), budget=budget)
    saved = before - crossing(arrays, nodes[found])
    worth = saved * 100.0 >= worth_pct * before and enough(saved / sent_rows_s(arrays))
    if worth and draft.rearrange({c: nodes[found]}):
        return budget - float(puzzle.weight[found != start].sum())
    return budget
