"""Preventive parallelism (Kombi et al., AUTOSCALE): instances by local and global activity, one decision per window.

EstimInput = estimated arrivals of the next window + pending; Capacity = window / latency * degree, latency the mean
processing time of a row; EstimCapacity = Capacity + eps. A critical parent's output, min(EstimInput, Capacity) * SF
with SF = emitted / executed, split over its children by what each received, is combined with a child's own estimate.
CPU is declared by the user and not enforced. After a change the topology rests for one window, so that no decision is
taken from numbers that straddle it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from barograph.model import Cycle, Demand, Forecast, Frame, Operator, OperatorDemand, Reason, Snapshot, ratio_of_sums
from barograph.model.frame import NOTHING
from barograph.scale.activity import Activity, Thresholds, capacity_drift, new_degree
from barograph.scale.measured import reckoned_pct
from barograph.scale.protocol import bounded
from barograph.scale.rest import changed_within


class Combine(StrEnum):
    """How a child's own estimate and its parents' output become one."""

    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Estimates:
    """One operator's numbers of one window. capacity: of the present degree; latency_s: 0 where not known."""

    input_rows: float
    capacity_rows: float
    drift_rows: float
    selectivity: float
    rising: bool
    degree: int

    @property
    def level(self) -> float:
        """EstimInput / EstimCapacity; 0 where the capacity is not known, so that nothing is decided upward."""
        capacity = self.capacity_rows + self.drift_rows
        return self.input_rows / capacity if capacity > 0 else 0.0

    def output_rows(self, degree: int) -> float:
        return min(self.input_rows, self.capacity_rows * degree / self.degree) * self.selectivity


@dataclass(frozen=True)
class Parallelism:
    """window_s: longer than the largest stateful window. combine: max or min of own estimate and parents' output.

    drift_windows: windows behind eps; drift_bound: its bound, as a part of the capacity. scale_sources: AUTOSCALE
    leaves sources alone. follow_new_degree, aim_at_theta_max: ours, off in the paper: a parent's output follows the
    degree it is about to have (its children grow one window sooner), and operators are sized for theta_max.
    """

    window_s: float = 60.0
    theta_min: float = 0.3
    theta_max: float = 0.8
    combine: Combine = Combine.MAX
    drift_windows: int = 4
    drift_bound: float = 0.2
    scale_sources: bool = False
    follow_new_degree: bool = False
    aim_at_theta_max: bool = False

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        window = max(1, round(self.window_s / now.cycle_s))
        frame = Frame.of(history, now, max(60, window * self.drift_windows))
        found: dict[tuple[str, str], OperatorDemand] = {}
        local = self._local(frame, forecast, window)
        feeding: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for link, part in zip(frame.links, _parts(frame, window), strict=True):
            feeding[link.child].append((link.parent, part))
        resting = {t.name: _resting(history, now, t.name, window, _seen(frame, t.name)) for t in now.topologies}
        estimates = dict(local)
        degrees: dict[int, int] = {}
        for i, (topology_name, operator_name) in enumerate(frame.keys):
            operator = now.topology(topology_name).operator(operator_name)
            e = estimates[i] = self._combined(i, local, estimates, degrees, feeding[i])
            held_still = resting[topology_name] or (
                "sources are not scaled" if frame.sources[i] and not self.scale_sources else ""
            )
            degrees[i] = operator.parallelism if held_still else self._degree(now, operator, e)
            shares = reckoned_pct(history, now, topology_name, operator, degrees[i], window)
            found[topology_name, operator_name] = OperatorDemand(
                topology_name,
                operator_name,
                degrees[i],
                shares,
                shares,
                self._degree(now, operator, e),
                self._why(f"{topology_name}/{operator_name}", local[i], e, degrees[i], held_still),
            )
        order = [(t.name, o.name) for t in now.topologies for o in t.operators]
        return Demand(tuple(found[key] for key in order), enforced=False)

    def _local(self, frame: Frame, forecast: Forecast, window: int) -> dict[int, Estimates]:
        """Each operator by itself."""
        selectivity = np.nan_to_num(ratio_of_sums(frame.column("emitted"), frame.column("executed"), window))
        window_s = window * float(frame.cycle_s[-1])
        pending = np.maximum(frame.column("pending")[-1], 0.0)
        found = {}
        for i, (topology, operator) in enumerate(frame.keys):
            expected = forecast.of(topology, operator)
            degree = frame.snapshots[-1].topology(topology).operator(operator).parallelism
            each = _capacities(frame, i, window, window_s, self.drift_windows)
            found[i] = Estimates(
                (expected.arrived if expected else 0.0) * window + float(pending[i]),
                each[-1] * degree if each else 0.0,
                capacity_drift(each, degree, self.drift_bound),
                float(selectivity[i]),
                expected.rising if expected else False,
                degree,
            )
        return found

    def _combined(
        self,
        i: int,
        local: dict[int, Estimates],
        estimates: dict[int, Estimates],
        degrees: dict[int, int],
        parents: list[tuple[int, float]],
    ) -> Estimates:
        """With the parents' output where one of them is critical by itself; this is also what it passes on."""
        thresholds = Thresholds(self.theta_min, self.theta_max)
        if not any(thresholds.activity(local[p].level) is Activity.CRITICAL for p, _ in parents):
            return local[i]
        after = degrees if self.follow_new_degree else {p: local[p].degree for p, _ in parents}
        output = sum(estimates[p].output_rows(after[p]) * part for p, part in parents)
        pick = max if self.combine is Combine.MAX else min
        return replace(local[i], input_rows=pick(local[i].input_rows, output))

    def _degree(self, now: Snapshot, operator: Operator, e: Estimates) -> int:
        if e.capacity_rows <= 0:
            return operator.parallelism
        degree = new_degree(
            operator.parallelism,
            e.level,
            e.rising,
            operator.min_parallelism,
            operator.max_parallelism,
            Thresholds(self.theta_min, self.theta_max),
            self.aim_at_theta_max,
        )
        return bounded(now, operator, degree)

    def _why(self, about: str, local: Estimates, e: Estimates, degree: int, held_still: str) -> Reason:
        activity = Thresholds(self.theta_min, self.theta_max).activity(e.level)
        why = held_still or f"activity is {activity}, load is {'rising' if e.rising else 'not rising'}"
        if not held_still and e.capacity_rows <= 0:
            why = "its capacity is not known yet"
        return Reason(
            about,
            why,
            {
                "lal": local.level,
                "gal": e.level,
                "input_rows": e.input_rows,
                "capacity_rows": e.capacity_rows,
                "drift_rows": e.drift_rows,
                "degree_before": float(e.degree),
                "degree": float(degree),
            },
        )


def _capacities(frame: Frame, i: int, window: int, window_s: float, windows: int) -> list[float]:
    """Rows one instance can do in a window, window by window, oldest first; windows without work are left out."""
    busy, executed = frame.column("busy_s")[:, i], frame.column("executed")[:, i]
    found = []
    for k in range(windows):
        end = len(frame) - k * window
        rows = slice(max(0, end - window), max(0, end))
        if end > 0 and executed[rows].sum() > NOTHING and busy[rows].sum() > NOTHING:
            found.append(window_s * float(executed[rows].sum() / busy[rows].sum()))
    if not found:  # it did nothing lately: what it could do when it last worked
        worked = np.flatnonzero((executed > NOTHING) & (busy > NOTHING))
        found = [window_s * float(executed[worked[-1]] / busy[worked[-1]])] if len(worked) else []
    return found[::-1]


def _seen(frame: Frame, topology: str) -> int:
    """In how many of the last cycles the topology was there."""
    mine = [i for i, key in enumerate(frame.keys) if key[0] == topology]
    return int(frame.seen[:, mine].any(axis=1).sum())


def _parts(frame: Frame, window: int) -> list[float]:
    """Of each link, which part of its parent's output it carries, by what was really sent in the window."""
    sent = frame.sent[-window:].sum(axis=0).tolist() if frame.links else []
    total: dict[int, float] = defaultdict(float)
    children: dict[int, int] = defaultdict(int)
    for link, rows in zip(frame.links, sent, strict=True):
        total[link.parent] += rows
        children[link.parent] += 1
    return [
        rows / total[link.parent] if total[link.parent] > 0 else 1 / children[link.parent]
        for link, rows in zip(frame.links, sent, strict=True)
    ]


def _resting(history: Sequence[Cycle], now: Snapshot, topology: str, window: int, seen_cycles: int) -> str:
    """Why the topology makes no decision now; empty where it may."""
    if seen_cycles < window:
        return f"{seen_cycles} of the {window} cycles of a window have been seen"
    return "grace period of one window after a change" if changed_within(history, now, topology, window) else ""
