"""WordCount from Kafka: throughput against the replay source, latency at half of it, catching up, and the lag seen.

Each run is on three nodes of its own, with one real broker for all of them and a producer that writes each row when it
is due. Four parts, about 20 minutes. BENCH_SECONDS (60) is the length of a run's load and of the longest backlog,
BENCH_RATE (20000) the rows a second of the first part:

- ``throughput``: a query that starts behind, from Kafka and from the replay source: rows a second while it catches up,
  and core-seconds of the broker and of the instances.
- ``latency``: at half of that rate: p50, p99 and max from when a row is due.
- ``behind``: operators cost CPU as in the papers, and the query starts BENCH_SECONDS behind: seconds until the backlog
  is below one second of load, under ``adaptive`` and under fixed shares of the same CPU (``fixed-equal``).
- ``lag``: in every second of the runs from Kafka, whether the lag that a policy sees is the true one of at most a
  second before, give or take 20 rows.

JSON has these four. Bars: every row is counted once; the lag seen is the true one in 99 % of the seconds; adaptive
catches up no later than fixed shares. BENCH_FOLDER keeps every run's JSON.
"""

import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from barograph.kafka import Broker, start_broker
from barograph.model import Load
from bench._figures import Bar, finish, say
from bench._processes import cpu_s
from bench._whole_run import Report, is_exact, whole_run

SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
RATE = int(os.environ.get("BENCH_RATE", "20000"))
SLOW_RATE = 300  # of the part in which operators cost CPU
BUSY = "split=300,count=40"
SLACK_ROWS = 20.0  # rows that are due and on their way into the topic


@dataclass(frozen=True)
class Told:
    """A run: its load, and its report."""

    load: str
    seconds: float
    report: Report

    def lines(self) -> list[tuple[float, float, float, float, float | None]]:
        """For each second: when, rows due/s, rows read/s, the backlog by the load, the backlog seen."""
        found = self.report["by_second"]
        names = ("at_s", "due_rows_s", "read_rows_s", "backlog_rows", "seen_backlog_rows")
        return list(zip(*(found[name] for name in names), strict=True))

    def caught_up_s(self) -> float:
        """Since the first second of the run; as long as the run where it did not."""
        lines = self.lines()
        return next((at_s for at_s, due, _, left, _ in lines if left < due), self.seconds) - lines[0][0]

    def rows_s(self) -> float:
        """While the backlog was above a second of load; the first second is the start."""
        busy = [read for _, due, read, left, _ in self.lines()[1:] if left > due]
        return statistics.median(busy) if busy else 0.0

    def lag_errors(self) -> list[float]:
        """By how many rows the lag seen is outside of what it was within the last second; 0: it was right."""
        schedule = Load.parse(self.load).schedule(self.seconds)
        found = []
        for at_s, _, _, left, seen in self.lines():
            if seen is not None and at_s > 1.0:
                produced = schedule.rows_by(min(at_s, self.seconds)) - schedule.rows_by(min(at_s - 1.0, self.seconds))
                most, least = left + SLACK_ROWS, max(0.0, left - produced) - SLACK_ROWS
                found.append(max(0.0, seen - most, least - seen))
        return found


def one(folder: Path, name: str, broker: Broker | None, load: str, seconds: float, *more: str) -> Told:
    say(f"-- {name}: {load}, {seconds:g} s")
    reached = () if broker is None else ("--brokers", broker.address, "--brokers-file", str(broker.client))
    source = () if broker is None else ("--source", "kafka", *reached)
    shape = ("--load", load, "--seconds", f"{seconds:g}", "--epoch", "20s")
    report, error = whole_run("wordcount", *shape, *source, *more, timeout_s=600.0 + 3 * seconds)
    if report is None:
        raise RuntimeError(f"the run {name} failed:\n{error}")
    (folder / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
    return Told(load, seconds, report)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="barograph-bench-") as kept, start_broker() as broker:
        folder = Path(os.environ.get("BENCH_FOLDER") or kept)
        folder.mkdir(parents=True, exist_ok=True)
        fast = (f"constant {RATE}", 1.5 * SECONDS, "--node-cpu", "2", "--behind", f"{SECONDS / 2:g}s")
        assert broker.pid is not None
        before_s = cpu_s(broker.pid)
        kafka = one(folder, "kafka", broker, *fast)
        broker_core_s = cpu_s(broker.pid) - before_s
        replay = one(folder, "replay", None, *fast)
        half = max(100, round(kafka.rows_s() / 2))
        calm = one(folder, "half", broker, f"constant {half}", SECONDS, "--node-cpu", "2")
        slow = (f"constant {SLOW_RATE}", 3 * SECONDS)
        costly = ("--behind", f"{SECONDS:g}s", "--busy", BUSY, "--cycle", "2s")
        ours = one(folder, "adaptive", broker, *slow, "--policy", "adaptive", *costly)
        like = ("--policy", "fixed-equal", "--like", str(folder / "adaptive.json"))
        fixed = one(folder, "fixed", broker, *slow, *like, *costly)
    errors = [error for told in (kafka, calm, ours, fixed) for error in told.lag_errors()]
    right = sum(e == 0.0 for e in errors) / max(1, len(errors))
    due = calm.report["latency_ms"]["due"]
    result = {
        "throughput": {
            "kafka_rows_s": kafka.rows_s(),
            "replay_rows_s": replay.rows_s(),
            "broker_core_s": round(broker_core_s, 1),
            "instances_core_s": kafka.report["cpu_core_s"]["used"],
            "instances_from_replay_core_s": replay.report["cpu_core_s"]["used"],
        },
        "latency": {"rows_s": half, "p50_ms": due["p50"], "p99_ms": due["p99"], "max_ms": due["max"]},
        "behind": {
            "adaptive_s": ours.caught_up_s(),
            "fixed_s": fixed.caught_up_s(),
            "adaptive_core_s": ours.report["cpu_core_s"],
            "fixed_core_s": fixed.report["cpu_core_s"],
        },
        "lag": {"seconds": len(errors), "right": round(right, 4), "worst_rows": max(errors, default=0.0)},
    }
    exact = sum(is_exact(told.report) for told in (kafka, replay, calm, ours, fixed))
    return finish(
        result,
        [
            Bar("runs in which every row was counted once", float(exact), at_least=5.0),
            Bar("seconds in which the lag seen is the true one", right, at_least=0.99),
            Bar("time to catch up, adaptive / fixed", ours.caught_up_s() / max(0.1, fixed.caught_up_s()), at_most=1.0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
