"""All operators of one depth, and the edges that leave them, as arrays: what the coarse grain computes at once.

Instances are numbered by place here: operators in order of depth, so that a level is one range. All senders of an
edge are treated alike; only the fine grain knows keys that one sender alone uses.
"""

from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.calibration import Hop
from barograph.engines.sim.world.layout import EdgePart, Floats, Ints, WorldLayout
from barograph.model import Grouping


class Level:
    """target, _weight, _hop_s, _edge_of: one entry for each pair of an edge leaving the level and a target instance.

    send_s, out_per_row: by instance of the level. receive_s: CPU per row by place, over all places.
    burst: the squared spread of gaps between arrivals at the target that this edge causes.
    leaving[e, w]: of the rows of entry e the part that leaves worker w; empty unless workers have sending threads.
    """

    def __init__(
        self,
        layout: WorldLayout,
        operators: Sequence[int],
        start: dict[int, int],
        hops: Sequence[Hop],
        threads: bool,
    ) -> None:
        sizes = [layout.operators[o].n for o in operators]
        first = start[operators[0]]
        self.span = slice(first, first + sum(sizes))
        self._blocks = np.cumsum([0, *sizes[:-1]])
        self._member = np.repeat(np.arange(len(operators)), sizes)
        self.has_sources = any(layout.operators[o].is_source for o in operators)
        out = [(position, layout.edges[e]) for position, o in enumerate(operators) for e in layout.operators[o].outputs]
        self._from = np.array([p for p, _ in out], dtype=np.intp)
        self._selectivity = np.array([e.selectivity for _, e in out])
        self.edges: list[tuple[int, slice]] = []
        self.send_s = np.zeros(sum(sizes))
        self.out_per_row = np.zeros(sum(sizes))
        self.receive_s = np.zeros(len(layout.instances))
        target: list[Floats] = []
        weight: list[Floats] = []
        hop: list[Floats] = []
        edge_of: list[Floats] = []
        burst: list[Floats] = []
        leaving: list[Floats] = [np.zeros((0, layout.workers))]
        at = 0
        for number, (position, edge) in enumerate(out):
            part = layout.operators[edge.target]
            delay, receive, send = _ways(layout, edge, hops)
            mine = slice(self._blocks[position], self._blocks[position] + sizes[position])
            self.send_s[mine] += send
            self.out_per_row[mine] += edge.copies
            places = slice(start[edge.target], start[edge.target] + part.n)
            self.receive_s[places] += receive
            target.append(np.arange(places.start, places.stop, dtype=np.float64))
            weight.append(_dealt(layout, edge))
            hop.append(delay)
            edge_of.append(np.full(part.n, float(number)))
            burst.append(_burst(layout, edge))
            if threads:
                leaving.append(_leaving(layout, edge))
            self.edges.append((edge.index, slice(at, at + part.n)))
            at += part.n
        self.target: Ints = _joined(target).astype(np.intp)
        self._weight = _joined(weight)
        self._hop_s = _joined(hop)
        self._edge_of = _joined(edge_of).astype(np.intp)
        self.burst = _joined(burst)
        self.leaving = np.concatenate(leaving)
        self._edge_starts = np.array([s.start for _, s in self.edges], dtype=np.intp)
        self.target_operator: Ints = np.repeat(
            [e.target for _, e in out], [layout.operators[e.target].n for _, e in out]
        ).astype(np.intp)

    def _totals(self, x: Floats) -> Floats:
        """Rows each edge carries."""
        found: Floats = np.add.reduceat(x, self._blocks)[self._from] * self._selectivity
        return found

    def spread(self, x: Floats) -> Floats:
        found: Floats = self._totals(x)[self._edge_of] * self._weight
        return found

    def throttle(self, x: Floats, room: Floats) -> tuple[Floats, Floats]:
        """What can be executed with the room downstream, and which part of the intended rows that is."""
        wanted = self.spread(x)
        ratio = np.where(wanted > 0, room[self.target] / np.where(wanted > 0, wanted, 1.0), 1.0)
        if ratio.min() >= 1.0:
            return x, np.ones(x.size)
        by_edge = np.minimum(1.0, np.minimum.reduceat(np.maximum(0.0, ratio), self._edge_starts))
        by_operator = np.ones(self._blocks.size)
        np.minimum.at(by_operator, self._from, by_edge)
        fraction = by_operator[self._member]
        return x * fraction, fraction

    def pass_ages(self, x: Floats, ages: Floats, contribution: Floats, wait_s: Floats | float = 0.0) -> None:
        """Ages (times rows) at the targets grow by what was sent, each row as old as its senders' mean.

        wait_s: added to the delay of the hop.
        """
        way_s = self._hop_s + wait_s
        rows = np.add.reduceat(x, self._blocks)
        for channel in ages:
            total = np.add.reduceat(channel[self.span], self._blocks)
            mean = np.where(rows > 0, total / np.where(rows > 0, rows, 1.0), 0.0)[self._from]
            channel += np.bincount(
                self.target, weights=contribution * (mean[self._edge_of] + way_s), minlength=channel.size
            )


def levels(layout: WorldLayout, hops: Sequence[Hop], threads: bool) -> tuple[list[Level], Ints]:
    """The levels, and which instance of the layout is at each place."""
    order: list[Ints] = []
    start: dict[int, int] = {}
    at = 0
    for o in layout.order:
        part = layout.operators[o]
        start[o] = at
        order.append(np.arange(part.start, part.start + part.n))
        at += part.n
    by_depth: dict[int, list[int]] = {}
    for o in layout.order:
        by_depth.setdefault(layout.operators[o].depth, []).append(o)
    found = [Level(layout, operators, start, hops, threads) for operators in by_depth.values()]
    return found, np.concatenate(order)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)


def _dealt(layout: WorldLayout, edge: EdgePart) -> Floats:
    """The share of the edge's rows each target instance gets."""
    if edge.grouping is not Grouping.DIRECT and not edge.sticky:
        return edge.weights
    senders = layout.operators[edge.source].n
    dealt = np.bincount(edge.home, minlength=len(edge.weights)) / senders
    constant = 1.0 if edge.grouping is Grouping.DIRECT else edge.sticky
    found: Floats = (1.0 - constant) * edge.weights + constant * dealt
    return found


def _burst(layout: WorldLayout, edge: EdgePart) -> Floats:
    """Keyed rows arrive at random, shuffled ones in turn; several rows out of one arrive together."""
    senders = layout.operators[edge.source].n
    together = np.maximum(1.0, edge.selectivity * edge.weights)
    turns = 1.0 if edge.grouping is Grouping.FIELDS else 1.0 - 1.0 / senders
    return turns * together


def _leaving(layout: WorldLayout, edge: EdgePart) -> Floats:
    """By target and worker: the part of the senders, all alike, that are in the worker while the target is not."""
    a, b = layout.operators[edge.source].span, layout.operators[edge.target].span
    senders = layout.worker_of[a]
    part = np.bincount(senders[senders >= 0], minlength=layout.workers) / max(1, senders.size)
    found: Floats = np.where(np.arange(layout.workers) == layout.worker_of[b][:, None], 0.0, part)
    return found


def _ways(layout: WorldLayout, edge: EdgePart, hops: Sequence[Hop]) -> tuple[Floats, Floats, Floats]:
    """By target: mean delay and CPU to receive a row. By sender: CPU to send what one executed row causes."""
    a, b = layout.operators[edge.source].span, layout.operators[edge.target].span
    senders, targets = a.stop - a.start, b.stop - b.start
    near_w = _matches(layout.worker_of[a], np.ones(senders), layout.worker_of[b]) / senders
    near_n = _matches(layout.node_of[a], np.ones(senders), layout.node_of[b]) / senders
    parts = np.stack([near_w, near_n - near_w, 1.0 - near_n])
    weights = edge.weights
    out_w = _matches(layout.worker_of[b], weights, layout.worker_of[a])
    out_n = _matches(layout.node_of[b], weights, layout.node_of[a])
    out = np.stack([out_w, out_n - out_w, weights.sum() - out_n])
    delay = np.array([h.delay_s for h in hops]) @ parts
    receive = np.array([h.receive_cpu_s for h in hops]) @ parts
    send = np.array([h.send_cpu_s for h in hops]) @ out * edge.selectivity
    assert delay.size == targets
    return delay, receive, send


def _matches(keys: Ints, weights: Floats, wanted: Ints) -> Floats:
    """For each wanted key the sum of the weights of equal keys."""
    names, place = np.unique(keys, return_inverse=True)
    total = np.bincount(place, weights=weights, minlength=names.size)
    at = np.minimum(np.searchsorted(names, wanted), names.size - 1)
    found: Floats = np.where(names[at] == wanted, total[at], 0.0)
    return found
