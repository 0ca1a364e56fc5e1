"""What restarts did to a run's output: rows put out again, and the output as it was without them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barograph.engines.spark.supervise import Restart


@dataclass(frozen=True, slots=True)
class RestartReport:
    """One death and what followed. rows_replayed: read again from the source. rows_repeated: put out again."""

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
    """Rows by 10 ms of wall time that were new to the world. A time in which only repeated rows left keeps a 0."""
    new = dict(output)
    for restart in restarts:
        left = restart.rows_repeated
        died_tenth = (start_ms + restart.at_s * 1000) / 10
        for tenth in sorted(t for t in new if t >= died_tenth):
            taken = min(left, new[tenth])
            new[tenth] -= taken
            left -= taken
            if left == 0:
                break
    return new


def restart_report(restart: Restart, start_ms: int) -> RestartReport:
    """One death of the query as a report has it: seconds count from the load's start."""
    at_s = (restart.at_ms - start_ms) / 1000
    return RestartReport(at_s, restart.cause, restart.down_s, restart.rows.read, restart.rows.output)
