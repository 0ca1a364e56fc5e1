"""Which instance each row goes to, row by row, and the cost of the hop. One Route for each edge."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from barograph.engines.sim.calibration import Hop
from barograph.engines.sim.world.layout import SAME_WORKER, EdgePart, Floats, Ints, WorldLayout
from barograph.model import Grouping

_TABLE = 1 << 16


class SentRows:
    """The rows that a batch of executed rows sends over one edge.

    row: for each row sent, the executed row it comes from, None where every row sends exactly one.
    over: whether a target has too little room for its rows.
    """

    def __init__(self, route: "Route", of: Ints, row: Ints | None, target: Ints, room: Floats) -> None:
        self.route = route
        self.row = row
        self.target = target
        self.source = of if row is None else of[row]
        self.pair = self.source * route.n_target + target
        self._rows_in = of.size
        self._count()
        self._room = np.maximum(0, np.ceil(room[route.target_span])).astype(np.intp)
        self.over = bool((self.counts.sum(axis=0) > self._room).any())

    def _count(self) -> None:
        route = self.route
        flat = np.bincount(self.pair, minlength=route.n_source * route.n_target)
        self.counts = flat.reshape(route.n_source, route.n_target)

    def stuck(self, came: Floats) -> Ints:
        """Executed rows that would send to a target after its room is used up, first come first served."""
        row = np.arange(self._rows_in) if self.row is None else self.row
        found = [np.empty(0, dtype=np.intp)]
        for j in np.flatnonzero(self.counts.sum(axis=0) > self._room):
            mine = row[self.target == j]
            mine = mine[np.argsort(came[mine], kind="stable")]
            room = int(self._room[j])
            late = mine[room:]
            # a row whose first copy still found room is not stuck: else one that sends more than the room never moves
            found.append(late[late != mine[room - 1]] if room else late)
        return np.concatenate(found)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Only what these executed rows send."""
        if self.row is None:
            mask = kept
        else:
            mask = kept[self.row]
            self.row = (np.cumsum(kept) - 1)[self.row[mask]]
        self.target, self.source, self.pair = self.target[mask], self.source[mask], self.pair[mask]
        self._rows_in = int(np.count_nonzero(kept))
        self._count()


class Route:
    def __init__(
        self, layout: WorldLayout, edge: EdgePart, hops: Sequence[Hop], seed: int, old: "Route | None"
    ) -> None:
        source, target = layout.operators[edge.source], layout.operators[edge.target]
        self.edge = edge
        self.n_source, self.n_target = source.n, target.n
        self.target_span = target.span
        distance = layout.distance(edge)
        self.delay_s = np.array([h.delay_s for h in hops])[distance].ravel()
        self.leaves = distance != SAME_WORKER
        self.worker = layout.worker_of[source.span]
        receive = np.array([h.receive_cpu_s for h in hops])[distance]
        self.receive_pair_s = receive.ravel()
        shares = _pair_shares(edge, source.n)
        send = np.array([h.send_cpu_s for h in hops])[distance]
        self.send_s: Floats = (send * shares).sum(axis=1) * edge.selectivity
        weight = shares.sum(axis=0)
        self.receive_s: Floats = (receive * shares).sum(axis=0) / np.where(weight > 0, weight, 1.0)
        fits = old is not None and old.n_source == self.n_source and old.n_target == self.n_target
        self._executed: Ints = old._executed if old is not None and fits else np.zeros(source.n, dtype=np.intp)
        self._turn: Ints = old._turn if old is not None and fits else np.arange(source.n) % target.n
        fresh = (self._turn, self._executed)
        self._kept: tuple[Ints, Ints] = old._kept if old is not None and fits else fresh
        self._table: Ints | None = None
        self._stuck: NDArray[np.bool_] | None = None
        self._home = edge.home
        self._at = 1
        if edge.grouping is Grouping.FIELDS:
            mixed = zlib.crc32(f"{edge.index}/{target.n}".encode())
            rng = np.random.default_rng([seed, mixed, 2])
            self._table = rng.choice(target.n, size=2 * _TABLE, p=edge.weights)
            self._stuck = rng.random(2 * _TABLE) < edge.sticky

    def send(self, of: Ints, room: Floats) -> SentRows:
        """Rows are executed in the order given (by instance). Nothing is remembered until ``settle``."""
        row: Ints | None = None
        out_of = of
        if self.edge.selectivity != 1.0:
            row = self._rows_out(of)
            out_of = of[row]
        grouping = self.edge.grouping
        if grouping is Grouping.ALL:
            row = np.repeat(np.arange(of.size) if row is None else row, self.n_target)
            target = np.tile(np.arange(self.n_target), row.size // max(1, self.n_target))
        elif grouping is Grouping.SHUFFLE:
            count = np.bincount(out_of, minlength=self.n_source)
            lead = self._turn - (np.cumsum(count) - count)
            target = (np.arange(out_of.size) + lead[out_of]) % self.n_target
        elif grouping is Grouping.GLOBAL:
            target = np.zeros(out_of.size, dtype=np.intp)
        elif grouping is Grouping.DIRECT:
            target = out_of % self.n_target
        else:
            target = self._keyed(out_of)
        return SentRows(self, of, row, target, room)

    def _rows_out(self, of: Ints) -> Ints:
        """The k-th row of an instance sends floor((k+1) s) - floor(k s) rows: s on average, without randomness."""
        s = self.edge.selectivity
        if s == int(s):
            return np.repeat(np.arange(of.size), int(s))
        count = np.bincount(of, minlength=self.n_source)
        k = np.arange(of.size) + (self._executed - (np.cumsum(count) - count))[of]
        out = np.floor((k + 1) * s + 1e-9) - np.floor(k * s + 1e-9)
        return np.repeat(np.arange(of.size), out.astype(np.intp))

    def _keyed(self, of: Ints) -> Ints:
        assert self._table is not None
        assert self._stuck is not None
        n = of.size
        self._at = (self._at * 25173 + 13849) & 0xFFFF
        at = slice(self._at, self._at + n)
        target = self._table[at] if n <= _TABLE else np.resize(self._table, n)
        if self.edge.sticky == 0.0:
            return target
        constant = self._stuck[at] if n <= _TABLE else np.resize(self._stuck, n)
        return np.where(constant, self._home[of], target)

    def commit(self) -> None:
        self._kept = (self._turn, self._executed)

    def fail(self) -> None:
        """Rows that are replayed take the same routes again."""
        self._turn, self._executed = self._kept

    def settle(self, sent: SentRows, executed: Ints) -> None:
        """Remember what was really sent: where the round-robin stands, how many rows each instance executed."""
        self._turn = (self._turn + sent.counts.sum(axis=1)) % self.n_target
        self._executed = self._executed + executed


def _pair_shares(edge: EdgePart, n_source: int) -> Floats:
    """For each pair (i, j) the rows j gets of each row that i sends."""
    if edge.grouping is Grouping.DIRECT:
        n = len(edge.weights)
        return np.eye(n)[np.arange(n_source) % n]
    shares = np.broadcast_to(edge.weights, (n_source, len(edge.weights)))
    if edge.sticky:
        shares = (1.0 - edge.sticky) * shares + edge.sticky * np.eye(len(edge.weights))[edge.home]
    return shares
