"""Output rows that restarts repeated, and the output without them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barograph.engines.spark.query.replayed import Restart
from barograph.experiments.figures.pauses import STEP_MS


@dataclass(frozen=True, slots=True)
class RestartReport:
    """One failure and its restart. rows_replayed: read again from the source. rows_repeated: written again."""

    at_s: float
    cause: str
    down_s: float
    rows_replayed: int
    rows_repeated: int

    def to_json(self) -> dict[str, object]:
        return {
            "at_s": round(self.at_s, 3),
            "cause": self.cause,
            "down_s": round(self.down_s, 3),
            "rows_replayed": self.rows_replayed,
            "rows_repeated": self.rows_repeated,
        }


def first_time_output(output: Mapping[int, int], restarts: Iterable[RestartReport], start_ms: int) -> dict[int, int]:
    """Rows by centisecond since 1970, without repeated ones. A centisecond with only repeated rows keeps a 0."""
    new = dict(output)
    for restart in restarts:
        left = restart.rows_repeated
        failed_step = (start_ms + restart.at_s * 1000) / STEP_MS
        for step in sorted(t for t in new if t >= failed_step):
            taken = min(left, new[step])
            new[step] -= taken
            left -= taken
            if left == 0:
                break
    return new


def restart_report(restart: Restart, start_ms: int) -> RestartReport:
    """A restart of the query for the report; seconds count from the load's start."""
    at_s = (restart.at_ms - start_ms) / 1000
    return RestartReport(at_s, restart.cause, restart.down_s, restart.rows.read, restart.rows.output)
