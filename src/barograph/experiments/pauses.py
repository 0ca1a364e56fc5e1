"""How long the output stood still while rows were due."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barograph.model import Schedule

TENTH_MS = 10


@dataclass(frozen=True, slots=True)
class Pause:
    """From the last row out, or from when a row fell due if none was waiting, to the next row out. Load seconds."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def pauses(
    output: Mapping[int, int], schedule: Schedule, start_ms: int, close_s: float, rows_per_line: int
) -> list[Pause]:
    """Every gap in the output, which is counted in steps of 10 ms since 1970. Lines fall due until ``close_s``."""
    found = []
    last_s, out = 0.0, 0
    for tenth in sorted(output):
        at_s = (tenth * TENTH_MS - start_ms) / 1000
        if at_s > 0:
            lines_due = schedule.rows_by(min(last_s, close_s))
            if out < int(lines_due) * rows_per_line:
                found.append(Pause(last_s, at_s))
            elif last_s < close_s and (next_due_s := schedule.due_s(int(lines_due) + 1)) < at_s:
                found.append(Pause(max(last_s, next_due_s), at_s))
            last_s = at_s
        out += output[tenth]
    return found


def longest(found: Iterable[Pause], start_s: float = 0.0, end_s: float = float("inf")) -> float:
    """The longest pause that touches the time between, 0 where there is none."""
    return max((p.length_s for p in found if p.end_s >= start_s and p.start_s <= end_s), default=0.0)
