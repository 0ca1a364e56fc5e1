"""Which of the new groups takes which of the present places, so that as few instances as possible move.

An assignment problem: groups are rows, places are columns, the worth of a pair is how many instances stay. Exact (the
Hungarian method with potentials) up to a size at which it is fast, greedy by falling worth above.
"""

import numpy as np

from barograph.place.support.cluster_arrays import Real, Whole

EXACT_UP_TO = 160  # rows; the exact method grows with the cube of it


def assign(worth: Real) -> Whole:
    """For each row its column, all different. -inf forbids a pair; a row without a column gets -1. rows <= columns."""
    rows = len(worth)
    if rows == 0:
        return np.zeros(0, dtype=np.int64)
    if rows > EXACT_UP_TO:
        return _greedy(worth)
    finite = worth[np.isfinite(worth)]
    top = float(finite.max()) if len(finite) else 0.0
    forbidden = (top - float(finite.min()) if len(finite) else 0.0) * (rows + 1) + (rows + 1)
    cost = np.where(np.isfinite(worth), top - worth, forbidden)
    found = _hungarian(cost)
    bad = ~np.isfinite(worth[np.arange(rows), found])
    return np.where(bad, -1, found)


def _hungarian(cost: Real) -> Whole:
    """Least total cost, one column for each row. Potentials u, v and one shortest augmenting path for each row."""
    n, m = cost.shape
    u, v = np.zeros(n + 1), np.zeros(m + 1)
    owner = np.full(m + 1, -1, dtype=np.int64)  # column -> row; the last column is the start of each path
    for row in range(n):
        owner[m] = row
        column = m
        least = np.full(m, np.inf)
        came_from = np.full(m, m, dtype=np.int64)
        done = np.zeros(m + 1, dtype=np.bool_)
        while owner[column] != -1:
            done[column] = True
            reduced = cost[owner[column]] - u[owner[column]] - v[:m]
            better = ~done[:m] & (reduced < least)
            least[better] = reduced[better]
            came_from[better] = column
            step_to = int(np.where(done[:m], np.inf, least).argmin())
            delta = float(least[step_to])
            u[owner[done]] += delta
            v[done] -= delta
            least[~done[:m]] -= delta
            column = step_to
        while column != m:
            owner[column] = owner[came_from[column]]
            column = int(came_from[column])
    found = np.full(n, -1, dtype=np.int64)
    taken = np.flatnonzero(owner[:m] != -1)
    found[owner[taken]] = taken
    return found


def _greedy(worth: Real) -> Whole:
    """Pairs by falling worth; then the remaining rows take the first column that is allowed for them."""
    found = np.full(worth.shape[0], -1, dtype=np.int64)
    free = np.ones(worth.shape[1], dtype=np.bool_)
    rows, columns = np.nonzero(np.isfinite(worth) & (worth > 0))
    for k in np.lexsort((columns, rows, -worth[rows, columns])).tolist():
        row, column = int(rows[k]), int(columns[k])
        if found[row] < 0 and free[column]:
            found[row], free[column] = column, False
    for row in np.flatnonzero(found < 0).tolist():
        open_to = np.flatnonzero(free & np.isfinite(worth[row]))
        if len(open_to):
            found[row], free[open_to[0]] = open_to[0], False
    return found
