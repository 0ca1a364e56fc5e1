"""AUTOSCALE's numbers of one window (Kombi et al.), operator by operator: what comes, what can be done, what goes out.

EstimInput = estimated arrivals of the next iteration + pending; Capacity = window / latency * degree, latency the mean
processing time of a row; eps = the drift of Capacity; SF = emitted / executed. Values and arithmetic only: nothing here
decides.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from barograph.model import Forecast, Frame, ratio_of_sums
from barograph.model.frame import NOTHING
from barograph.scale.activity import capacity_drift

Feeding = Mapping[int, Sequence[tuple[int, float]]]
"""Operator -> its parents, each with the part of the parent's output that comes here."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """One operator's numbers of one window. capacity_rows: of the present degree; 0 where it is not known.

    held_back: whether rows wait at a source because an operator from here on is too slow for them.
    """

    input_rows: float
    capacity_rows: float
    drift_rows: float
    selectivity: float
    rising: bool
    degree: int
    held_back: bool = False

    @property
    def level(self) -> float:
        """EstimInput / EstimCapacity; 0 where the capacity is not known, so that nothing is decided upward."""
        capacity = self.capacity_rows + self.drift_rows
        return self.input_rows / capacity if capacity > 0 else 0.0

    def output_rows(self, degree: int) -> float:
        """EstimOutput = min(EstimInput, Capacity) * SF, with so many instances."""
        able = self.capacity_rows * degree / self.degree if self.capacity_rows > 0 else self.input_rows
        return min(self.input_rows, able) * self.selectivity


def feeding(frame: Frame, window_s: float) -> Feeding:
    """By what was really sent in the window, a parent without output evenly."""
    sent = frame.sent[-frame.window(window_s) :].sum(axis=0).tolist() if frame.links else []
    total: dict[int, float] = defaultdict(float)
    children: dict[int, int] = defaultdict(int)
    for link, rows in zip(frame.links, sent, strict=True):
        total[link.parent] += rows
        children[link.parent] += 1
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for link, rows in zip(frame.links, sent, strict=True):
        part = rows / total[link.parent] if total[link.parent] > 0 else 1 / children[link.parent]
        found[link.child].append((link.parent, part))
    return found


def own(frame: Frame, forecast: Forecast, window_s: float, drift_windows: int, drift_bound: float) -> list[Estimates]:
    """Each operator by itself, in the frame's order."""
    cycles = frame.window(window_s)
    selectivity = np.nan_to_num(ratio_of_sums(frame.column("emitted"), frame.column("executed"), cycles))
    pending = np.maximum(frame.column("pending")[-1], 0.0)
    executed = frame.column("executed")[-1]
    cycle_s = float(frame.cycle_s[-1])
    iterations = _iterations(frame, window_s, drift_windows)
    found = []
    for i, (topology, operator) in enumerate(frame.keys):
        expected = forecast.of(topology, operator)
        degree = frame.snapshots[-1].topology(topology).operator(operator).parallelism
        each = _capacities(frame, i, window_s, iterations)
        found.append(
            Estimates(
                input_rows=(expected.arrived / cycle_s * window_s if expected else 0.0) + float(pending[i]),
                capacity_rows=each[-1] * degree if each else 0.0,
                drift_rows=capacity_drift(each, degree, drift_bound),
                selectivity=float(selectivity[i]),
                rising=expected.rising if expected else False,
                degree=degree,
                # A source always has a few rows that fell due just now; more than it read in a sample is a backlog.
                held_back=bool(frame.sources[i]) and float(pending[i]) > float(executed[i]),
            )
        )
    return found


def with_backlog(estimates: Sequence[Estimates], feeding: Feeding) -> list[Estimates]:
    """The same, with rows that wait at a source counted before the operators they wait for.

    In Storm a row that cannot be executed yet waits before the operator that is too slow: it is pending there, and that
    makes the operator critical. Barograph keeps such rows at the source, and an operator is sent no more than it can
    do; so a congested operator would look busy but never critical, and nothing downstream would ever scale. Hence a
    source's backlog counts in its EstimOutput, and from there down the graph: behind a source that is held back an
    operator's input is at least what its parents would send if nothing held them back, which is at most what they can
    do. This is an operator's own, local estimate: which of max and min is combined has no part in it.
    """
    found: list[Estimates] = []
    for i, e in enumerate(estimates):
        parents = [(found[p], part) for p, part in feeding.get(i, ())]
        if any(p.held_back for p, _ in parents):
            sent = sum(p.output_rows(p.degree) * part for p, part in parents)
            e = replace(e, held_back=True)
            if sent > e.input_rows:  # what came lately was what the operator could take; its trend tells nothing
                e = replace(e, input_rows=sent, rising=any(p.rising for p, _ in parents))
        found.append(e)
    return found


def _iterations(frame: Frame, window_s: float, windows: int) -> list[slice]:
    """The cycles of the last windows, oldest first. Windows slide by one sample: each ends one cycle after another."""
    ends = range(max(1, len(frame) - windows + 1), len(frame) + 1)
    return [slice(end - frame.until(end).window(window_s), end) for end in ends]


def _capacities(frame: Frame, i: int, window_s: float, iterations: Sequence[slice]) -> list[float]:
    """Rows one instance can do in a window, by iterations, oldest first; those without work are left out."""
    busy, executed = frame.column("busy_s")[:, i], frame.column("executed")[:, i]
    found = []
    for cycles in iterations:
        rows, seconds = float(executed[cycles].sum()), float(busy[cycles].sum())
        if rows > NOTHING and seconds > NOTHING:
            found.append(window_s * rows / seconds)
    if not found:  # it did nothing lately: what it could do when it last worked
        worked = np.flatnonzero((executed > NOTHING) & (busy > NOTHING))
        found = [window_s * float(executed[worked[-1]] / busy[worked[-1]])] if len(worked) else []
    return found
