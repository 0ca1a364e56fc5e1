"""Degraded seconds of a run on Spark, from its output, its load and its stops; measured by ``engines/degraded.py``."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from barograph.engines.degraded import Span, degraded_s
from barograph.experiments.pauses import TENTH_MS, Pause
from barograph.experiments.repeats import RestartReport
from barograph.model import Schedule

STOP_S = 0.25  # a shorter gap in the output is latency, not a stop


def stops_of(
    pauses: Iterable[Pause],
    windows: Iterable[Span] = (),
    restarts: Iterable[RestartReport] = (),
    decisions: Iterable[Mapping[str, object]] = (),
) -> list[Span]:
    """When the topology stood still or a change was under way, in seconds of the load.

    windows: of orders, until each was in effect. decisions: of a controller, which notes each when it is in effect.
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
    rows_per_line: int,
    stops: Sequence[Span],
) -> dict[int, int] | None:
    """output: rows by 10 ms since 1970, each row once. close_s: no line falls due after it, and no second counts."""
    seconds = int(close_s)
    rows = [0.0] * seconds
    for tenth, count in output.items():
        second = (tenth * TENTH_MS - start_ms) // 1000
        if 0 <= second < seconds:
            rows[second] += count
    by_then = [schedule.rows_by(float(s)) * rows_per_line for s in range(seconds + 1)]
    return degraded_s(rows, [b - a for a, b in pairwise(by_then)], stops)
