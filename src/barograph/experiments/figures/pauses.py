"""How long the output paused while rows were due."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barograph.model import Schedule

STEP_MS = 10  # output is counted by centisecond
TOGETHER_S = 0.5  # actions of the same second may have caused the same restart
CAUSED_S = 30.0  # in which the loss of a process is noticed at the latest


@dataclass(frozen=True, slots=True)
class Pause:
    """From the last output row, or from when the next row fell due, to the next output row. Seconds of the load."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def pauses(
    output: Mapping[int, int], schedule: Schedule, start_ms: int, close_s: float, results_per_row: int
) -> list[Pause]:
    """Every gap in the output. output: rows by centisecond since 1970. Rows fall due until ``close_s``."""
    found = []
    last_s, out = 0.0, 0
    for step in sorted(output):
        at_s = (step * STEP_MS - start_ms) / 1000
        if at_s > 0:
            rows_due = schedule.rows_by(min(last_s, close_s))
            if out < int(rows_due) * results_per_row:
                found.append(Pause(last_s, at_s))
            elif last_s < close_s and (next_due_s := schedule.due_s(int(rows_due) + 1)) < at_s:
                found.append(Pause(max(last_s, next_due_s), at_s))
            last_s = at_s
        out += output[step]
    return found


def longest(found: Iterable[Pause], start_s: float = 0.0, end_s: float = float("inf")) -> float:
    """The longest pause that overlaps the time from start_s to end_s; 0 where there is none."""
    return max((p.length_s for p in found if p.end_s >= start_s and p.start_s <= end_s), default=0.0)


def around(
    action: tuple[float, float], restarts: Iterable[tuple[float, float]], begun_s: Iterable[float]
) -> tuple[float, float]:
    """The time in which an action shows in the output: until the restart that it caused is done, if it caused one.

    restarts: from the failure until the query ran again. begun_s: when each action of the run began. A kill takes a
    moment, and its query fails later; the first failure after the action counts as its own, if it comes within CAUSED_S
    and before the next action.
    """
    start_s, end_s = action
    next_s = min((s for s in begun_s if s > start_s + TOGETHER_S), default=float("inf"))
    caused = [r for r in restarts if start_s - STEP_MS / 1000 <= r[0] <= min(end_s + CAUSED_S, next_s)]
    return start_s, max(end_s, min(caused)[1]) if caused else end_s
