"""A run from a topic or from the replay source: its report, and what was measured beside it."""

import statistics
from dataclasses import dataclass, field

from bench._kafka.cpu import CpuOverTime
from bench._kafka.ends import Ends
from bench._whole_run import Report

SEEN_S = 1.0  # the lag that is seen may be as old as this


@dataclass(frozen=True)
class Line:
    """A second of a run. backlog: by the load's schedule. seen: the backlog that a policy sees; None: unknown."""

    at_s: float
    due_s: float
    read_s: float
    all_read: int
    backlog: int
    seen: int | None


@dataclass(frozen=True)
class Told:
    """ends: what the broker said meanwhile; None: not from a topic."""

    report: Report
    ends: Ends | None = None
    cpu: CpuOverTime = field(default_factory=CpuOverTime)

    @property
    def lines(self) -> list[Line]:
        found = self.report["by_second"]
        names = ("at_s", "due_rows_s", "read_rows_s", "all_read_rows", "backlog_rows", "seen_backlog_rows")
        return [Line(*values) for values in zip(*(found[name] for name in names), strict=True)]

    @property
    def seconds(self) -> float:
        return float(self.report["seconds"])

    def behind_s(self) -> float:
        """How many seconds of load the query was behind in its first second."""
        return self.lines[0].backlog / max(1.0, self.lines[0].due_s)

    def has_caught_up(self) -> bool:
        return any(line.backlog < line.due_s for line in self.lines)

    def caught_up_s(self) -> float:
        """Since the first second of the query; to the end of the run where it did not."""
        first = self.lines[0].at_s
        return next((line.at_s for line in self.lines if line.backlog < line.due_s), self.seconds) - first

    def busy_seconds(self) -> int:
        """In which the backlog was above a second of load; the first second is the start."""
        return len(self._busy())

    def rows_s(self) -> float:
        """In these seconds; 0 without any."""
        return statistics.median(self._busy() or [0.0])

    def _busy(self) -> list[float]:
        return [line.read_s for line in self.lines[1:] if line.backlog > line.due_s]

    def written(self) -> float:
        """The part of the rows that were due that was in the topic, in the worst second; 1 without a topic. Below 1
        the producer is what is measured."""
        if self.ends is None:
            return 1.0
        start_s = self.report["start_ms"] / 1000
        behind = [line for line in self.lines if line.backlog > 0]
        parts = [self.ends.most_at(start_s + line.at_s) / (line.backlog + line.all_read) for line in behind]
        return min(1.0, *parts) if parts else 1.0

    def lag_errors(self) -> list[float]:
        """Of each second: by how many rows the lag seen is outside of what it was within the last second; 0: it was
        right; infinite: it was unknown.

        The lag seen and the rows read are of the same reports, so their sum is where the topic was seen to end.
        """
        if self.ends is None or not len(self.ends):
            return []
        found, start_s = [], self.report["start_ms"] / 1000
        for line in self.lines:
            if line.seen is None:
                found.append(float("inf"))
                continue
            least, most = self.ends.least_at(start_s + line.at_s - SEEN_S), self.ends.most_at(start_s + line.at_s)
            end = line.seen + line.all_read
            found.append(float(max(0, end - most, least - end)))
        return found

    def cpu_core_s(self) -> dict[str, float]:
        """By kind of process, while the load lasted."""
        start_s = self.report["start_ms"] / 1000
        return self.cpu.between(start_s, start_s + self.seconds)

    def reserved(self) -> dict[str, float]:
        """Of each operator, per cent of a core on average from the query's start to the load's end."""
        since_s = self.lines[0].at_s
        return {
            name.rpartition("/")[2]: _mean(series["at_s"], series["reserved_pct"], since_s, self.seconds)
            for name, series in self.report["operators"].items()
        }

    def limit_core_s(self) -> float:
        """What all instances might use, in that time."""
        since_s = self.lines[0].at_s
        limits = [
            _mean(s["at_s"], [100.0 if pct is None else pct for pct in s["limit_pct"]], since_s, self.seconds)
            for s in self.report["operators"].values()
        ]
        return sum(limits) / 100.0 * (self.seconds - since_s)


def _mean(at_s: list[float], values: list[float], since_s: float, until_s: float) -> float:
    """Each value holds from its moment to the next one; the first one also before."""
    begins = [since_s, *(max(since_s, at) for at in at_s[1:])]
    ends = [*begins[1:], until_s]
    return sum(v * max(0.0, e - b) for v, b, e in zip(values, begins, ends, strict=True)) / (until_s - since_s)
