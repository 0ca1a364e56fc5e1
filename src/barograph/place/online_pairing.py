"""Items into bins, pair by pair in falling order of traffic: both phases of the online scheduler (Aniello et al., 3.2).

A pair of which neither has a bin goes to the least loaded bin that holds both, else it is split. Otherwise the (at most
nine) ways to put the two into {their bins, the least loaded bin with room} are compared and the one with least
traffic between bins is kept; where nothing is strictly better, both stay. Ties go to the lowest bin.

``affinity[b, i]`` is the traffic between item i and what is in bin b, kept up to date with every move, so a way is
evaluated in a few additions. Pairs that change nothing, which is nearly all of them, are recognised many at a time.
"""

import numpy as np
from numpy.typing import NDArray

from barograph.place.support.cluster_arrays import HAIR, Real, Whole
from barograph.place.support.pairs import Index, Links, Pairs

HOPELESS = -2  # an item that fits no bin
LARGEST_RUN = 1 << 15


class Bins:
    """most: items each bin may hold. capacity: load it may hold. start_load: load of other topologies."""

    def __init__(self, load: Real, most: Whole, capacity: Real, start_load: Real, links: Links) -> None:
        self.load = load
        self.most, self.capacity, self.links = most, capacity + HAIR, links
        self.bin_load, self.count = start_load.copy(), np.zeros(len(most), dtype=np.int64)
        self.home: Whole = np.full(len(load), -1, dtype=np.int64)
        self.affinity = np.zeros((len(most), len(load)))
        self.typical = float(load.mean()) if len(load) else 0.0
        self.hair = 0.0
        self._spare_bin: int | None = None
        self._loads: list[float] = load.tolist()

    def put(self, i: int, b: int) -> None:
        """Move item i into bin b, from any other bin or none."""
        a = int(self.home[i])
        if a == b:
            return
        if a >= 0:
            self.count[a] -= 1
            self.bin_load[a] -= self._loads[i]
        self._spare_bin = None
        self.home[i] = b
        self.count[b] += 1
        self.bin_load[b] += self._loads[i]
        for others, rows in self.links(i):
            if a >= 0:
                self.affinity[a, others] -= rows
            self.affinity[b, others] += rows

    def least_loaded(self, items: int, load: float) -> int:
        """The least loaded bin with room for ``items`` items of that total load; -1 if there is none."""
        fits = (self.count + items <= self.most) & (self.bin_load + load <= self.capacity)
        if not fits.any():
            return -1
        return int(np.where(fits, self.bin_load, np.inf).argmin())

    def take_pairs(self, pairs: Pairs) -> None:
        """One pass over the pairs. The result is the same as evaluating them one by one."""
        i, j, rate = pairs.i, pairs.j, pairs.rate
        if len(i) == 0:
            return
        self.hair = 1e-9 * float(rate[0])
        if self.most.max() <= 1:  # no two items fit into one bin, so no way is better than another
            seen, first_seen = np.unique(np.stack([i, j], axis=1), return_index=True)
            for k in seen[np.argsort(first_seen)].tolist():
                self._alone(k)
            return
        ranges = iter((*pairs.even, (len(i), len(i))))
        start, stop = next(ranges)
        at, run = 0, 64
        while at < len(i):
            while at >= stop and start < len(i):
                start, stop = next(ranges)
            if self.home[i[at]] == -1 or self.home[j[at]] == -1:
                self._settle(int(i[at]), int(j[at]), float(rate[at]))
                at += 1
                continue
            if start <= at < stop:
                end, first = self._first_in_even(pairs, start, at, stop, run)
            else:
                end = min(at + run, len(i))
                first = self._first_change(i[at:end], j[at:end], rate[at:end])
            if first is None:
                at, run = end, min(run * 2, LARGEST_RUN)
                continue
            at += first
            self._settle(int(i[at]), int(j[at]), float(rate[at]))
            at, run = at + 1, max(64, 2 * first)

    def _first_in_even(self, pairs: Pairs, start: int, at: int, stop: int, run: int) -> tuple[int, int | None]:
        """As ``_first_change``, for whole rows of an even range: end of the examined rows, first pair that changes.

        An even range is every item of one operator with every item of another, in order, so it has rows.
        """
        j0, width = int(pairs.j[start]), int(pairs.j[stop - 1] - pairs.j[start]) + 1
        row, offset = divmod(at - start, width)
        end = min(stop, start + (row + max(1, run // width)) * width)
        i0 = int(pairs.i[at])
        home_i, home_j = self.home[i0 : int(pairs.i[end - 1]) + 1], self.home[j0 : j0 + width]
        unset = home_i.min() < 0 or home_j.min() < 0
        a, some_i = self._one_of_each(home_i, i0)
        b, some_j = self._one_of_each(home_j, j0)
        if unset or len(a) * len(b) >= end - at:
            end = min(end, at + run)
            return end, self._first_change(pairs.i[at:end], pairs.j[at:end], pairs.rate[at:end])
        a, some_i = np.repeat(a, len(b)), np.repeat(some_i, len(b))
        b, some_j = np.resize(b, len(a)), np.resize(some_j, len(a))
        better = self._better(some_i, some_j, np.full(len(a), pairs.rate[at]), a, b)
        if not better.any():
            return end, None
        changes = np.zeros((len(self.most), len(self.most)), dtype=np.bool_)
        changes[a, b] = better
        flags = changes[home_i][:, home_j].ravel()[offset:]
        return end, int(flags.argmax()) if flags.any() else None

    def _one_of_each(self, homes: Whole, start: int) -> tuple[Whole, Whole]:
        """The bins in use, and one item of each, of the items numbered from ``start`` on."""
        some = np.full(len(self.most), -1, dtype=np.int64)
        some[homes] = np.arange(start, start + len(homes))
        bins = np.flatnonzero(some >= 0)
        return bins, some[bins]

    def place_rest(self) -> None:
        """Items without traffic, or that found no room before: heaviest first, each to the least loaded bin."""
        left = np.flatnonzero(self.home < 0)
        for i in left[np.argsort(-self.load[left], kind="stable")].tolist():
            b = self.least_loaded(1, self._loads[i])
            if b >= 0:
                self.put(i, b)

    def fill_empty(self) -> None:
        """Every bin that is still empty gets the item whose move costs least traffic."""
        for empty in np.flatnonzero(self.count == 0).tolist():
            placed = np.flatnonzero(self.home >= 0)
            homes = self.home[placed]
            may = (self.count[homes] > 1) & (self.bin_load[empty] + self.load[placed] <= self.capacity[empty])
            if self.most[empty] < 1 or not may.any():
                continue
            cost = self.affinity[homes, placed] - self.affinity[empty, placed]
            self.put(int(placed[np.where(may, cost, np.inf).argmin()]), empty)

    def _settle(self, i: int, j: int, rate: float) -> None:
        a, b = int(self.home[i]), int(self.home[j])
        if HOPELESS in (a, b):
            for k in (i, j):
                if self.home[k] == -1:
                    self._alone(k)
            return
        if a == -1 and b == -1:
            both = self.least_loaded(2, self._loads[i] + self._loads[j])
            if both >= 0:
                self.put(i, both)
                self.put(j, both)
            else:
                self._alone(i)
                self._alone(j)
            return
        best = self._best_way(i, j, rate, a, b)
        if best is None:
            self._alone(i if a == -1 else j)
        else:
            # one item leaves before the other enters: in an exchange, full bins must not count both
            self.put(i, best[0])
            self.put(j, best[1])

    def _alone(self, i: int) -> None:
        b = self.least_loaded(1, self._loads[i])
        if b >= 0:
            self.put(i, b)
        else:
            self.home[i] = HOPELESS

    def _spare(self) -> int:
        if self._spare_bin is None:
            self._spare_bin = self.least_loaded(1, self.typical)
        return self._spare_bin

    def _best_way(self, i: int, j: int, rate: float, a: int, b: int) -> tuple[int, int] | None:
        """The best of the ways for a pair of which at least one has a bin; None where none is possible."""
        spare = self._spare() if a >= 0 and b >= 0 else self.least_loaded(1, self._loads[i if a < 0 else j])
        bins = sorted({x for x in (a, b, spare) if x >= 0})
        to_i = {x: float(self.affinity[x, i]) - (rate if x == b else 0.0) for x in bins}
        to_j = {x: float(self.affinity[x, j]) - (rate if x == a else 0.0) for x in bins}
        best: tuple[int, int] | None = None
        kept = -np.inf
        if a >= 0 and b >= 0:
            best, kept = (a, b), to_i[a] + to_j[b] + (rate if a == b else 0.0)
        for x in bins:
            for y in bins:
                near = to_i[x] + to_j[y] + (rate if x == y else 0.0)
                if near > kept + self.hair and self._possible(i, j, a, b, x, y):
                    best, kept = (x, y), near
        return best

    def _possible(self, i: int, j: int, a: int, b: int, x: int, y: int) -> bool:
        for c in {x, y}:
            more = (x == c) + (y == c) - (a == c) - (b == c)
            li, lj = self._loads[i], self._loads[j]
            load = li * ((x == c) - (a == c)) + lj * ((y == c) - (b == c))
            if more > 0 and self.count[c] + more > self.most[c]:
                return False
            if load > 0 and self.bin_load[c] + load > self.capacity[c]:
                return False
        return True

    def _first_change(self, i: Index, j: Index, rate: Real) -> int | None:
        """The first pair whose evaluation would change something; None if there is none."""
        a, b = self.home[i], self.home[j]
        unset = (a == -1) | (b == -1)
        if unset.any():
            stop = int(unset.argmax())
            if stop == 0:
                return 0
            found = self._first_change(i[:stop], j[:stop], rate[:stop])
            return stop if found is None else found
        changes = self._better(i, j, rate, np.maximum(a, 0), np.maximum(b, 0))
        changes &= (a >= 0) & (b >= 0)  # an item that fits no bin cannot be moved
        return int(changes.argmax()) if changes.any() else None

    def _better(self, i: Index | Whole, j: Index | Whole, rate: Real, a: Whole, b: Whole) -> NDArray[np.bool_]:
        """Which pairs have a possible way strictly better than staying; the nine ways of ``_best_way`` as arrays."""
        near = self.affinity
        same = a == b
        together = np.where(same, rate, 0.0)
        ia, jb = near[a, i] - together, near[b, j] - together
        ib, ja = near[b, i] - rate, near[a, j] - rate
        kept = ia + jb + together + self.hair
        li, lj = self.load[i], self.load[j]
        room_a, room_b = self.capacity[a] - self.bin_load[a], self.capacity[b] - self.bin_load[b]
        apart = ~same
        found: NDArray[np.bool_] = apart & (ib + ja > kept) & (lj - li <= room_a) & (li - lj <= room_b)
        found |= apart & (ib + jb + rate > kept) & (self.count[b] < self.most[b]) & (li <= room_b)
        found |= apart & (ia + ja + rate > kept) & (self.count[a] < self.most[a]) & (lj <= room_a)
        spare = self._spare()
        if spare >= 0:
            off_a, off_b = a != spare, b != spare
            is_, js = near[spare, i] - np.where(off_b, 0.0, rate), near[spare, j] - np.where(off_a, 0.0, rate)
            room = float(self.capacity[spare] - self.bin_load[spare])
            fits_i, fits_j = li <= room, lj <= room
            found |= off_a & fits_i & off_b & (is_ + jb > kept)
            found |= off_b & fits_j & off_a & (ia + js > kept)
            if self.count[spare] + 2 <= self.most[spare]:
                found |= off_a & off_b & (li + lj <= room) & (is_ + js + rate > kept)
            found |= apart & off_a & off_b & fits_i & (lj - li <= room_a) & (is_ + ja > kept)
            found |= apart & off_a & off_b & fits_j & (li - lj <= room_b) & (ib + js > kept)
        return found
