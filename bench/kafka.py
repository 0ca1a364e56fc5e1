"""WordCount from Kafka: throughput against the replay source, latency at half of it, catching up, and the lag seen.

Each run is on three nodes of its own, with one real broker for all of them and a producer that writes each row when it
is due. BENCH_SECONDS (60) is the length of a run's load and of the longest backlog, BENCH_RATE (20000) the rows a
second of the first part. BENCH_PARTS names the parts, all of them by default (about 20 minutes):

- ``throughput``: a query that starts behind, with its backlog in the topic, and the same from the replay source: rows a
  second while it catches up.
- ``latency``: at half of that rate, with a policy that only advises: p50, p99 and max from when a row is due; and the
  core-seconds of broker, producer, executors, driver, controller and the cluster's own processes, while the load lasts.
- ``behind``: operators cost CPU as in the papers, and the query starts BENCH_SECONDS behind: seconds until the backlog
  is below one second of load, under ``adaptive`` that lends nothing, and under fixed shares of the same CPU: what it
  reserved on average from the query's start to the load's end.

Lag, in every second of the runs from Kafka: whether the lag that a policy sees is the true one of at most a second
before. The truth is what the broker says, which is asked ten times a second beside the run, less what was read.

JSON has all of it. Bars: every row is counted once; the lag seen is the true one in 99 % of the seconds; rows that are
due are in the topic, so that the query is measured and not the producer; the throughput is of five seconds or more; a
query that is to start behind does, by 0.9 of that; fixed shares have the same CPU, and adaptive catches up before the
load ends and no later than they do. BENCH_FOLDER keeps every run's JSON and what was measured beside it; ``latency``
alone takes the rate from there.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from barograph.kafka import Broker, start_broker
from barograph.workloads.wordcount import DEFAULT_PARALLELISM
from bench._figures import Bar, finish, say
from bench._kafka.cpu import CpuWatched
from bench._kafka.ends import EndsWatched
from bench._kafka.told import Told
from bench._whole_run import is_exact, whole_run

SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
RATE = int(os.environ.get("BENCH_RATE", "20000"))
SLOW_RATE = 300  # of the part in which operators cost CPU
FEWEST_BUSY = 5.0  # seconds; the median of fewer is no throughput
BUSY = "split=300,count=40"
THROUGHPUT, LATENCY, BEHIND = "throughput", "latency", "behind"
PARTS = (THROUGHPUT, LATENCY, BEHIND)


class Bench:
    """folder: for the runs' JSON."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self._folder, self._broker = folder, broker
        self.runs: dict[str, Told] = {}

    def run(self, name: str, load: str, seconds: float, *more: str, topic: bool = True) -> Told:
        say(f"-- {name}: {load}, {seconds:g} s")
        broker = self._broker
        reached = ("--brokers", broker.address, "--brokers-file", str(broker.client))
        source = ("--source", "kafka", *reached) if topic else ()
        shape = ("--load", load, "--seconds", f"{seconds:g}", "--epoch", "20s")
        with (
            CpuWatched(broker.pid if topic else None) as watched,
            EndsWatched(broker.address, broker.login, "barograph-wordcount-", "-0") as asked,
        ):
            report, error = whole_run(
                "wordcount", *shape, *source, *more, timeout_s=600.0 + 3 * seconds, started=watched.begin
            )
        if report is None:
            raise RuntimeError(f"the run {name} failed:\n{error}")
        if asked.failure or (topic and not len(asked.ends)):
            raise RuntimeError(f"the broker did not say where the topic of {name} ends: {asked.failure}")
        told = Told(report, asked.ends if topic else None, watched.cpu)
        beside = {"ends": asked.ends.to_json(), "cpu": watched.cpu.to_json()}
        (self._folder / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
        (self._folder / f"{name}-beside.json").write_text(json.dumps(beside), encoding="utf-8")
        self.runs[name] = told
        return told

    def throughput(self) -> dict[str, object]:
        fast = (f"constant {RATE}", 1.5 * SECONDS, "--node-cpu", "2", "--behind", f"{SECONDS / 2:g}s")
        kafka, replay = self.run("kafka", *fast), self.run("replay", *fast, topic=False)
        return {
            "kafka_rows_s": kafka.rows_s(),
            "replay_rows_s": replay.rows_s(),
            "cpu_core_s": kafka.cpu_core_s(),
            "replay_cpu_core_s": replay.cpu_core_s(),
        }

    def latency(self) -> dict[str, object]:
        kept = self._folder / "kafka.json"
        fast = self.runs.get("kafka") or Told(json.loads(kept.read_text(encoding="utf-8")))
        half = max(100, round(fast.rows_s() / 2))
        told = self.run(
            "half", f"constant {half}", SECONDS, "--node-cpu", "2", "--policy", "adaptive", "--mode", "advise"
        )
        due = told.report["latency_ms"]["due"]
        return {
            "rows_s": half,
            "p50_ms": due["p50"],
            "p99_ms": due["p99"],
            "max_ms": due["max"],
            "cpu_core_s": told.cpu_core_s(),
            "seconds": told.seconds,
        }

    def behind(self) -> dict[str, object]:
        slow = (f"constant {SLOW_RATE}", 3 * SECONDS)
        costly = ("--behind", f"{SECONDS:g}s", "--busy", BUSY, "--cycle", "2s")
        ours = self.run("adaptive", *slow, "--policy", "adaptive", "--option", "lend=false", *costly)
        shares = {operator: pct / DEFAULT_PARALLELISM[operator] for operator, pct in ours.reserved().items()}
        text = ",".join(f"{operator}={pct:.3f}" for operator, pct in shares.items())
        fixed = self.run("fixed", *slow, "--policy", "fixed", "--share", text, *costly)
        return {
            name: {
                "caught_up_s": round(told.caught_up_s(), 1),
                "behind_at_first_rows": told.lines[0].backlog,
                "limit_core_s": round(told.limit_core_s(), 2),
                "reserved_pct": {operator: round(pct, 1) for operator, pct in told.reserved().items()},
                "used_core_s": told.report["cpu_core_s"]["used"],
                "cpu_core_s": told.cpu_core_s(),
            }
            for name, told in (("adaptive", ours), ("fixed", fixed))
        }

    def lag(self) -> dict[str, object]:
        """By run: seconds, of these right and unknown, and the largest error of the others."""
        found: dict[str, object] = {}
        for name, told in self.runs.items():
            if errors := told.lag_errors():
                known = [e for e in errors if e != float("inf")]
                found[name] = {
                    "seconds": len(errors),
                    "right": round(sum(e == 0.0 for e in errors) / len(errors), 4),
                    "unknown": len(errors) - len(known),
                    "worst_rows": max(known, default=0.0),
                }
        return found


def bars(runs: dict[str, Told]) -> list[Bar]:
    errors = [error for told in runs.values() for error in told.lag_errors()]
    right = sum(e == 0.0 for e in errors) / max(1, len(errors))
    exact = sum(is_exact(told.report) for told in runs.values())
    found = [
        Bar("runs in which every row was counted once", float(exact), at_least=float(len(runs))),
        Bar("seconds in which the lag seen is the true one", right, at_least=0.99),
    ]
    if caught := [runs[name].written() for name in ("kafka", "adaptive", "fixed") if name in runs]:
        found.append(Bar("part of the rows due that was in the topic, in the worst second", min(caught), at_least=0.97))
    if fast := [runs[name].busy_seconds() for name in ("kafka", "replay") if name in runs]:
        found.append(Bar("seconds over which the throughput is a median", float(min(fast)), at_least=FEWEST_BUSY))
    if "fixed" in runs:
        ours, fixed = runs["adaptive"], runs["fixed"]
        behind_s = min(ours.behind_s(), fixed.behind_s())
        faster = ours.caught_up_s() / max(0.1, fixed.caught_up_s())
        found += [
            Bar("seconds of load that the query starts behind", behind_s, at_least=0.9 * SECONDS),
            Bar("adaptive catches up before the load ends", float(ours.has_caught_up()), at_least=1.0),
            Bar("CPU limits, fixed / adaptive", fixed.limit_core_s() / ours.limit_core_s(), at_least=0.97),
            Bar("time to catch up, adaptive / fixed", faster, at_most=1.0),
        ]
    return found


def main() -> int:
    parts = os.environ.get("BENCH_PARTS", ",".join(PARTS)).split(",")
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"BENCH_PARTS: there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="barograph-bench-") as kept, start_broker() as broker:
        folder = Path(os.environ.get("BENCH_FOLDER") or kept)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, broker)
        calls = {THROUGHPUT: bench.throughput, LATENCY: bench.latency, BEHIND: bench.behind}
        result = {part: calls[part]() for part in PARTS if part in parts}
        return finish({**result, "lag": bench.lag()}, bars(bench.runs))


if __name__ == "__main__":
    sys.exit(main())
