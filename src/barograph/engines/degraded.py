"""For how many seconds the output of a topology was degraded: the measure of N-Storm's evaluation.

The paper: "we calculate the average throughput per second when the system was running smoothly. Based on this, we
calculate the duration of system performance degradation". A second is smooth when the topology ran in all of it, no
change was under way, and the output was not catching up after a stop. Loads may change over a run, so the stable output
of a second is what falls due in it, times the part of the due rows that smooth seconds put out; under a constant load
that is the paper's average. A median would not do: in a run that stands still for most of its time it is 0.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

DEGRADED_PCT = (20, 40, 60, 80, 100)
CAUGHT_UP_S = 0.25  # an output that is late by no more than this over its usual lag has caught up
Span = tuple[float, float]  # seconds: from, to
_HAIR = 1e-9  # so that 80 of 100 is 20 % below in binary arithmetic too


def degraded_s(output: Sequence[float], due: Sequence[float], stops: Iterable[Span]) -> dict[int, int] | None:
    """Seconds in which the output was at least 20, 40, 60, 80, 100 % below stable; None without a smooth second.

    output: rows put out in each second. due: rows that fell due in each, as rows of the output. stops: when the
    topology did not run or a change was under way.
    """
    smooth = smooth_seconds(output, due, stops)
    out, fell_due = np.asarray(output, dtype=np.float64), np.asarray(due, dtype=np.float64)
    if not out[smooth].sum() > 0 or not fell_due[smooth].sum() > 0:
        return None
    return steps_below(output, fell_due * (out[smooth].sum() / fell_due[smooth].sum()))


def steps_below(output: Sequence[float], stable: Sequence[float] | NDArray[np.float64]) -> dict[int, int]:
    """Steps of time in which the output was at least 20, 40, .. % below the stable output of that step.

    A step in which nothing is expected is not degraded.
    """
    out, wanted = np.asarray(output, dtype=np.float64), np.asarray(stable, dtype=np.float64)
    missing = wanted - out
    return {x: int(np.count_nonzero((wanted > 0) & (missing >= wanted * (x / 100 - _HAIR)))) for x in DEGRADED_PCT}


def smooth_seconds(output: Sequence[float], due: Sequence[float], stops: Iterable[Span]) -> NDArray[np.bool_]:
    """For each second, whether the topology ran undisturbed.

    After a stop the output catches up until it lags no more than it did before. Where it lags as much at the end of the
    stretch as at its beginning, it is not catching up: the load is all the topology can do.
    """
    lag_s = _lags_s(output, due)
    smooth = np.ones(len(output), dtype=np.bool_)
    for start_s, end_s in stops:
        smooth[max(0, int(start_s + _HAIR)) : max(0, int(np.ceil(end_s - _HAIR)))] = False
    usual_s = 0.0
    for first, end in _stretches(smooth):
        stretch = lag_s[first:end]
        caught_up = np.flatnonzero(stretch <= usual_s + CAUGHT_UP_S)
        if first > 0 and caught_up.size:
            smooth[first : first + int(caught_up[0]) + 1] = False
        elif first > 0 and stretch[-1] < stretch[0] - CAUGHT_UP_S:
            smooth[first:end] = False
        if smooth[end - 1]:
            usual_s = float(stretch[-1])
    return smooth


def _stretches(smooth: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First second and end of each run of smooth seconds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], smooth, [False]]).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _lags_s(output: Sequence[float], due: Sequence[float]) -> NDArray[np.float64]:
    """At the end of each second: for how long the next row to be put out has been due."""
    out, owed = np.cumsum(output, dtype=np.float64), np.concatenate([[0.0], np.cumsum(due, dtype=np.float64)])
    ends = np.arange(1.0, len(out) + 1.0)
    all_out = out >= owed[1:] * (1.0 - _HAIR)
    found: NDArray[np.float64] = np.where(all_out, 0.0, ends - np.interp(out, owed, np.arange(len(owed))))
    return found
