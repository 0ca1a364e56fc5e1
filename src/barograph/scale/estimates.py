"""AUTOSCALE's numbers of one window (Kombi et al.), operator by operator: input, capacity and output.

EstimInput = estimated arrivals of the next iteration + pending; Capacity = window / latency * degree, latency the mean
processing time of a row; eps = the drift of Capacity; SF = emitted / executed. Values and arithmetic only: it decides
nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from barograph.model import Forecast, Frame, ratio_of_sums
from barograph.model.frame import NOTHING
from barograph.scale.activity import capacity_drift

Feeding = Mapping[int, Sequence[tuple[int, float]]]
"""Operator -> its parents, each with the part of the parent's output that goes to this operator."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """One operator's numbers of one window. capacity_rows: of the present degree; 0 where it is not known.

    held_back: whether rows wait at a source because this operator or one after it is too slow.
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
        """EstimInput / EstimCapacity; 0 if the capacity is not known, so that the operator does not grow."""
        capacity = self.capacity_rows + self.drift_rows
        return self.input_rows / capacity if capacity > 0 else 0.0

    def output_rows(self, degree: int) -> float:
        """EstimOutput = min(EstimInput, Capacity) * SF, with ``degree`` instances."""
        able = self.capacity_rows * degree / self.degree if self.capacity_rows > 0 else self.input_rows
        return min(self.input_rows, able) * self.selectivity


def feeding(frame: Frame, window_s: float) -> Feeding:
    """From the rows sent in the window; the output of a parent that sent nothing is split evenly."""
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
                # A source always has a few rows that became due just now; more than it read in a sample is a backlog.
                held_back=bool(frame.sources[i]) and float(pending[i]) > float(executed[i]),
            )
        )
    return found


def with_backlog(estimates: Sequence[Estimates], feeding: Feeding) -> list[Estimates]:
    """The same, with rows that wait at a source counted as input of the operators they wait for.

    In Storm a row that cannot be executed yet waits in the queue of the operator that is too slow: it is pending there,
    which makes the operator critical. Barograph keeps such rows at the source, and an operator is sent no more than it
    can execute; so a congested operator would look busy but never critical, and nothing downstream would ever scale.
    Hence a source's backlog counts in its EstimOutput, and so on down the graph: behind a source that is held back, an
    operator's input is at least what its parents would send without backpressure, limited by their capacity. This is an
    operator's local estimate; it is used whether estimates are then combined by max or by min.
    """
    found: list[Estimates] = []
    for i, e in enumerate(estimates):
        parents = [(found[p], part) for p, part in feeding.get(i, ())]
        if any(p.held_back for p, _ in parents):
            sent = sum(p.output_rows(p.degree) * part for p, part in parents)
            e = replace(e, held_back=True)
            if (
                sent > e.input_rows
            ):  # recent arrivals were limited by the operator's capacity, so their trend is meaningless
                e = replace(e, input_rows=sent, rising=any(p.rising for p, _ in parents))
        found.append(e)
    return found


def _iterations(frame: Frame, window_s: float, windows: int) -> list[slice]:
    """The cycles of the last windows, oldest first. Windows slide by one sample: each ends one cycle later."""
    ends = range(max(1, len(frame) - windows + 1), len(frame) + 1)
    return [slice(end - frame.until(end).window(window_s), end) for end in ends]


def _capacities(frame: Frame, i: int, window_s: float, iterations: Sequence[slice]) -> list[float]:
    """Rows one instance can execute in a window, by iteration, oldest first; iterations without work are left out."""
    busy, executed = frame.column("busy_s")[:, i], frame.column("executed")[:, i]
    found = []
    for cycles in iterations:
        rows, seconds = float(executed[cycles].sum()), float(busy[cycles].sum())
        if rows > NOTHING and seconds > NOTHING:
            found.append(window_s * rows / seconds)
    if not found:  # no recent work: its capacity when it last worked
        worked = np.flatnonzero((executed > NOTHING) & (busy > NOTHING))
        found = [window_s * float(executed[worked[-1]] / busy[worked[-1]])] if len(worked) else []
    return found
