"""Degraded seconds of a run on Spark, from its output, its load and its stops; measured by ``engines/degraded.py``."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from barograph.engines.degraded import Span, degraded_s
from barograph.experiments.figures.pauses import STEP_MS, Pause
from barograph.experiments.figures.repeats import RestartReport
from barograph.model import Schedule

STOP_S = 0.25  # a shorter gap in the output is latency, not a stop


def stops_of(
    pauses: Iterable[Pause],
    windows: Iterable[Span] = (),
    restarts: Iterable[RestartReport] = (),
    decisions: Iterable[Mapping[str, object]] = (),
) -> list[Span]:
    """When the output paused or a change was in progress, in seconds of the load.

    windows: of actions, until each had taken effect. decisions: of a controller, recorded when they had taken effect.
    """
    found = [(p.start_s, p.end_s) for p in pauses if p.length_s >= STOP_S]
    found += [*windows, *((r.at_s, r.at_s + r.down_s) for r in restarts)]
    for decision in decisions:
        at_s, took_s = decision["at_s"], decision["pause_s"]
        if isinstance(at_s, float) and isinstance(took_s, float):
            found.append((at_s - took_s, at_s))
    return found


def degradation(
    output: Mapping[int, int],
    schedule: Schedule,
    start_ms: int,
    close_s: float,
    results_per_row: int,
    stops: Sequence[Span],
) -> dict[int, int] | None:
    """output: rows by centisecond since 1970, each row once. close_s: end of the load; later ones do not count."""
    seconds = int(close_s)
    rows = [0.0] * seconds
    for step, count in output.items():
        second = (step * STEP_MS - start_ms) // 1000
        if 0 <= second < seconds:
            rows[second] += count
    by_then = [schedule.rows_by(float(s)) * results_per_row for s in range(seconds + 1)]
    return degraded_s(rows, [b - a for a, b in pairwise(by_then)], stops)
