"""Overhead of the plug-in: the same query with and without it, in two applications that are measured in turn.

Each pair measures, in an order that alternates: throughput under overload; CPU of executor and driver per million
lines at half of that load; the median latency of words at half of that load, of a sample that both collect.
BENCH_PAIRS (12) and BENCH_EPOCH_S (6) say how many pairs, and how long the measured epoch is.
JSON: per figure the pairs, the median of their ratios (of latency: differences) and its 95 % interval. Bars: CPU ratio
at most 1.03, throughput ratio at least 0.98, latency at most 1 ms more.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from barograph.engines.spark.cluster.embedded import start_cluster
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import plugin_settings, real_time_settings, tuned_settings, workloads_settings
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.session import await_executors, open_session, real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.model import Load
from barograph.workloads.keyed_counts import COUNT_SQL
from barograph.workloads.parts import LAST_TIMES_SQL, TIMES_SQL
from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.truth import CHECKSUM_SQL, WORDS_SQL
from barograph.workloads.wordcount import SINK_SQL
from bench._figures import Bar, finish, say
from bench._processes import cpu_s

PAIRS = int(os.environ.get("BENCH_PAIRS", "12"))
EPOCH_S = float(os.environ.get("BENCH_EPOCH_S", "6"))
FAR_TOO_MUCH = 1_000_000
SAMPLE = "sample"
VARIANTS = ("plain", "ours")
NOW_MS = "cast(reflect('java.lang.System', 'currentTimeMillis') as bigint)"
Result = dict[str, float]


def main() -> int:
    settings = ClusterSettings(nodes=1, seats=8, executors=len(VARIANTS))
    with start_cluster(settings) as cluster, tempfile.TemporaryDirectory() as folder:
        conf = {**cluster.session_conf(), "spark.cores.max": "8", "spark.executor.instances": "1"}
        place = Path(folder) / "conf.json"
        place.write_text(json.dumps(conf))
        with application("plain", place) as plain, application("ours", place) as ours:
            both = {"plain": plain, "ours": ours}
            for name in VARIANTS:  # warm, and long enough for the compiler
                for _ in range(2):
                    measure(both[name], FAR_TOO_MUCH, False)
            half = measure(both["plain"], FAR_TOO_MUCH, False)["rows_s"] / 2
            say(f"half load: {half:,.0f} lines/s")
            found: dict[str, list[dict[str, float]]] = {"throughput": [], "cpu": [], "latency": []}
            for pair in range(PAIRS):
                order = VARIANTS if pair % 2 == 0 else VARIANTS[::-1]
                full = {name: measure(both[name], FAR_TOO_MUCH, False) for name in order}
                calm = {name: measure(both[name], half, False) for name in order}
                slow = {name: measure(both[name], half, True) for name in order}
                found["throughput"].append({n: full[n]["rows_s"] for n in VARIANTS})
                found["cpu"].append({n: calm[n]["cpu_s_per_million"] for n in VARIANTS})
                found["latency"].append({n: slow[n]["p50_ms"] for n in VARIANTS})
                say(f"pair {pair}: {json.dumps({k: v[-1] for k, v in found.items()})}")
    ratios = {k: [p["ours"] / p["plain"] for p in found[k]] for k in ("throughput", "cpu")}
    slower_ms = [p["ours"] - p["plain"] for p in found["latency"]]
    result = {
        "half_load_rows_s": round(half),
        "throughput_rows_s": {"pairs": found["throughput"], "ratio": summary(ratios["throughput"])},
        "cpu_s_per_million": {"pairs": found["cpu"], "ratio": summary(ratios["cpu"])},
        "p50_ms": {"pairs": found["latency"], "difference": summary(slower_ms)},
    }
    return finish(
        result,
        [
            Bar("CPU per million lines, with against without", statistics.median(ratios["cpu"]), at_most=1.03),
            Bar("throughput, with against without", statistics.median(ratios["throughput"]), at_least=0.98),
            Bar("p50 latency at half load, ms more", statistics.median(slower_ms), at_most=1.0),
        ],
    )


def summary(values: Sequence[float]) -> dict[str, float]:
    low, high = median_interval(values)
    return {"median": round(statistics.median(values), 4), "low": round(low, 4), "high": round(high, 4)}


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the sign test: order statistics that contain the median with this confidence."""
    ordered, n = sorted(values), len(values)
    depth = 0
    while 2 * sum(math.comb(n, i) for i in range(depth + 1)) / 2**n <= 1 - confidence:
        depth += 1
    low = max(depth - 1, 0)
    return ordered[low], ordered[n - 1 - low]


# --- the two applications: a process each, because a process has one Spark application ---


@contextmanager
def application(variant: str, conf: Path) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.overhead", variant, str(conf)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        answer(child)
        yield child
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait(60)


def measure(child: "subprocess.Popen[str]", rate: float, latency: bool) -> Result:
    assert child.stdin is not None
    child.stdin.write(json.dumps({"rate": rate, "latency": latency}) + "\n")
    child.stdin.flush()
    return answer(child)


def answer(child: "subprocess.Popen[str]") -> Result:
    stream: IO[str] | None = child.stdout
    assert stream is not None
    while line := stream.readline():
        if line.startswith("{"):
            result: Result = json.loads(line)
            return result
    raise RuntimeError(f"the application ended with code {child.wait()}")


def serve(variant: str, conf: Path) -> None:
    """Answer measurement requests until stdin is closed."""
    plain = {
        **real_time_settings(), **tuned_settings(), "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # the sink that throws rows away is not on the list
    }  # fmt: skip
    settings = plugin_settings() if variant == "ours" else plain
    spark = open_session(f"bench overhead {variant}", settings, workloads_settings(), json.loads(conf.read_text()))
    await_executors(spark, 1)
    engine = SparkEngine(spark, {}) if variant == "ours" else None
    print(json.dumps({"ready": 1}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(one(spark, engine, asked["rate"], asked["latency"])), flush=True)
    spark.stop()


def one(spark: SparkSession, engine: SparkEngine | None, rate: float, latency: bool) -> Result:
    """Measure the second epoch that read rows; the first is warm-up."""
    replay = Replay(Load.parse(f"constant {round(rate)}").schedule(1.0), 2, read_time=True)
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(engine, done))
    with tempfile.TemporaryDirectory(prefix="barograph-bench-", ignore_cleanup_errors=True) as folder:
        writer = query(spark, replay, latency).writeStream.outputMode("update")
        writer = writer.format("memory").queryName(SAMPLE) if latency else writer.format("noop")
        running = real_time(writer.option("checkpointLocation", folder), EPOCH_S).start()
        watcher.start()
        try:
            points, began_ms = [(0.0, 0.0, 0)], 0.0
            while len(points) < 3:  # an epoch that ended before its tasks were up has read nothing and does not count
                require_alive(running)
                rows = sum(committed_offsets(Path(folder)))
                if rows > points[-1][2]:
                    began_ms = began_ms or time.time() * 1000
                    points.append((time.monotonic(), application_cpu_s(spark), rows))
                time.sleep(0.02)
        finally:
            done.set()
            running.stop()
            watcher.join()
        p50 = p50_ms(spark, began_ms) if latency else 0.0
    _, (t0, c0, r0), (t1, c1, r1) = points
    return {"rows_s": (r1 - r0) / (t1 - t0), "cpu_s_per_million": (c1 - c0) / (r1 - r0) * 1e6, "p50_ms": p50}


def watch(engine: SparkEngine | None, done: threading.Event) -> None:
    """Observe like a controller, but once a second, which is more often than a controller does."""
    while not done.wait(1.0):
        if engine is not None:
            engine.observe()


def query(spark: SparkSession, replay: Replay, latency: bool) -> DataFrame:
    """The word count, without names for its operators: on Spark alone a name would be an extra plan node."""
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    lines = spark.readStream.format(FORMAT).options(**replay.options()).load().selectExpr("*", TIMES_SQL)
    words = lines.repartition(2).selectExpr(*WORDS_SQL, "times")
    counts = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL), expr(LAST_TIMES_SQL)).selectExpr(*SINK_SQL)
    if not latency:
        return counts
    sample = counts.where("pmod(checksum, 64) = 0")  # kept in the driver, so not all of them
    return sample.selectExpr("barograph_due_ms", "barograph_read_ms", f"{NOW_MS} as out_ms")


def p50_ms(spark: SparkSession, began_ms: float) -> float:
    """Of the words that came out in the measured epoch."""
    rows = spark.table(SAMPLE).where(f"out_ms > {began_ms}").collect()
    return float(statistics.median(r["out_ms"] - r["barograph_due_ms"] for r in rows))


def application_cpu_s(spark: SparkSession) -> float:
    """User and system time of the driver's and the executors' processes so far."""
    application_id = spark.sparkContext.applicationId
    assert application_id is not None
    driver = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    found = 0.0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            executor = application_id.encode() in (folder / "cmdline").read_bytes()
            if executor or int(folder.name) == driver:
                found += cpu_s(int(folder.name))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
