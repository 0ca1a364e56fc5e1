"""What the measured p99 says about the queueing model: p99 = floor + factor * model + margin. Pure.

For each of the last cycles the model is asked about the load that was measured, and compared with the p99 that was
measured. The factor is the median slope between pairs of cycles, the floor the median of what is left: medians, because
a single slow cycle (a collection of garbage, other work on the machine) says nothing about shares. The margin is what
four fifths of the cycles stay below. Cycles with a boundary in or just before them are left out: a pause is
no queue, and is weighed where changes are decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Snapshot, Topology, TopologyMetrics
from barograph.scale.adaptive.queueing import Leg, leg, path_p99_s

LOOK_CYCLES = 40
FEWEST = 3  # cycles; fewer say nothing
AFTER_BOUNDARY = 2  # cycles in which the backlog of a pause is cleared
BLIND_CYCLES = 5  # with rows and without any latency, after which it is said that there is none
UNLEARNED_CYCLES = 15  # with a latency; a start needs some of them until its first moves are over
BELOW = 0.8  # the part of the cycles that stay below the forecast
_PRIOR_PAIRS = 100  # how many pairs of cycles the model itself counts for, whose factor is 1
_APART_S = 1e-3  # cycles whose model values are nearer than this tell no slope
_FACTORS = (0.05, 20.0)


@dataclass(frozen=True, slots=True)
class Learned:
    """cycles: from how many it was learned."""

    floor_s: float
    factor: float
    margin_s: float
    cycles: int

    def p99_s(self, model_s: float) -> float:
        return self.floor_s + self.factor * model_s + self.margin_s


def p99_ms(metrics: TopologyMetrics) -> float | None:
    """From due to the sink by a column or by record times, where one is known, else from the read."""
    found = metrics.latency or metrics.latency_read
    return None if found is None else found.p99


def metrics_of(snapshot: Snapshot, topology: str) -> TopologyMetrics | None:
    return next((m for m in snapshot.topology_metrics if m.topology == topology), None)


def learn(history: Sequence[Cycle], now: Snapshot, topology: Topology) -> Learned | None:
    """None where too few cycles have a measured p99."""
    seen = [*(c.snapshot for c in history[-LOOK_CYCLES - AFTER_BOUNDARY :]), now]
    pairs = [
        (model_s, measured / 1e3)
        for snapshot, metrics in _calm(seen, topology.name)
        if (measured := p99_ms(metrics)) is not None and (model_s := _model_s(snapshot, topology)) is not None
    ]
    if len(pairs) < FEWEST:
        return None
    x, y = (np.array(column) for column in zip(*pairs[-LOOK_CYCLES:], strict=True))
    return fitted(x, y)


def fitted(model_s: NDArray[np.float64], measured_s: NDArray[np.float64]) -> Learned:
    """Floor, factor and margin from pairs of both."""
    i, j = np.triu_indices(len(model_s), 1)
    dx, dy = model_s[j] - model_s[i], measured_s[j] - measured_s[i]
    apart = np.abs(dx) > _APART_S
    count = int(apart.sum())
    slope = float(np.median(dy[apart] / dx[apart])) if count else 1.0
    factor = float(np.clip((count * slope + _PRIOR_PAIRS) / (count + _PRIOR_PAIRS), *_FACTORS))
    floor_s = float(np.median(measured_s - factor * model_s))
    if floor_s < 0.0:  # rows wait less than the model says at any load
        floor_s, factor = 0.0, float(np.clip(np.median(measured_s / np.maximum(model_s, 1e-6)), *_FACTORS))
    margin_s = max(0.0, float(np.quantile(measured_s - floor_s - factor * model_s, BELOW)))
    return Learned(floor_s, factor, margin_s, len(model_s))


def boundaries(history: Sequence[Cycle], now: Snapshot, topology: str) -> tuple[int, float]:
    """How many epochs ended in the cycles that are remembered, and how many seconds these are."""
    seen = [*(c.snapshot for c in history), now]
    known = [(s.at_s, m.epoch) for s in seen if (m := metrics_of(s, topology)) is not None]
    ended = sum(max(0, b[1] - a[1]) for a, b in pairwise(known))
    return ended, known[-1][0] - known[0][0] if known else 0.0


def why_blind(history: Sequence[Cycle], now: Snapshot, topology: str, idle: Sequence[str]) -> str | None:
    """Why the target of a topology of which nothing was learned is not followed; None while that is no wonder. idle:
    operators that have executed nothing so far."""
    seen = [metrics_of(s, topology) for s in (*(c.snapshot for c in history), now)]
    known = [m for m in seen if m is not None and m.completed_rows > 0]
    if len(known) >= BLIND_CYCLES and all(p99_ms(m) is None for m in known):
        why = "the target of its p99 cannot be held: no latency is known, neither by a column nor by record times"
        return f"{why}; name the column that has one (latency.column)"
    # What was longer ago is not learned from: a query that rests for a while is no wonder either.
    lately = [m for m in seen[-LOOK_CYCLES - AFTER_BOUNDARY - 1 :] if m is not None]
    if sum(p99_ms(m) is not None for m in lately) < UNLEARNED_CYCLES:
        return None
    if idle:
        return f"the target of its p99 is not followed: what a row costs at {', '.join(idle)} is not known without rows"
    ended, seconds = boundaries(history[-LOOK_CYCLES - AFTER_BOUNDARY :], now, topology)
    if ended * (AFTER_BOUNDARY + 2) < len(lately):
        return None
    why = f"the target of its p99 is not followed: an epoch ends every {seconds / ended:.0f} s, and cycles without its"
    return f"{why} pause are needed; give longer epochs (recovery, the query's trigger) or a shorter cycle"


def _calm(seen: Sequence[Snapshot], topology: str) -> list[tuple[Snapshot, TopologyMetrics]]:
    """The cycles without a boundary in them or just before them, each with its metrics."""
    found: list[tuple[Snapshot, TopologyMetrics]] = []
    since, last_epoch = 0, None
    for snapshot in seen:
        metrics = metrics_of(snapshot, topology)
        if metrics is None:
            continue
        since = 0 if last_epoch is not None and metrics.epoch != last_epoch else since + 1
        last_epoch = metrics.epoch
        if since > AFTER_BOUNDARY:
            found.append((snapshot, metrics))
    return found


def _model_s(snapshot: Snapshot, topology: Topology) -> float | None:
    """The model's p99 for the load and the service times of a past cycle; None where nothing was executed."""
    legs: dict[str, Leg] = {}
    for operator in topology.operators:
        rows = snapshot.metrics.rows_of_operator.get((topology.name, operator.name))
        if rows is None:
            return None
        busy_s, executed = (snapshot.metrics.columns[name][rows] for name in ("busy_s", "executed"))
        total = float(executed.sum())
        if total <= 0.0:
            return None
        service_s = np.full(len(rows), float(busy_s.sum()) / total)
        legs[operator.name] = leg(busy_s / snapshot.cycle_s, executed, service_s, snapshot.cycle_s)
    return path_p99_s(topology, legs)[0]
