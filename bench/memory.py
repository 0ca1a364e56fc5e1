"""Whether metering leaks: memory of driver and executors over ten minutes of 200 instances, observed once a second.

BENCH_MINUTES (10) says how long. Heaps have their full size from the start, so that growth of resident memory is not
that of the heap. JSON: ``resident_mb``: per process its memory at each half minute; ``heap_mb``: what the heaps of
driver and executors hold after a collection, likewise; ``growth``: of each the mean of the last two minutes against
that of minutes 3 and 4, when code is compiled and pools are filled. Each sample is taken just after an epoch's end,
because memory for rows and state depends on the position in the epoch. Bar: the largest growth at most 1.05.
"""

import os
import statistics
import time
from pathlib import Path

from pyspark.sql import SparkSession

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.model import Plan
from barograph.testing.local_cluster import open_local_cluster
from bench._figures import Bar, finish, say
from bench._processes import parent_of, resident_mb

MINUTES = float(os.environ.get("BENCH_MINUTES", "10"))
# Few sources and counts beside many splits: every pair of instances is a channel with its own threads.
PARALLELISM = {"source": 2, "split": 190, "count": 8}
CLUSTER = ClusterSettings(nodes=3, seats=80)
SAMPLES_PER_MINUTE = 2
HEAP = "heap of"


def main() -> int:
    rounds = round(MINUTES * SAMPLES_PER_MINUTE)
    found: dict[str, list[float]] = {}
    whole_heap = {"spark.executor.defaultJavaOptions": f"-Xms{CLUSTER.memory_mb}m -XX:+AlwaysPreTouch"}
    with (
        open_local_cluster(CLUSTER, whole_heap) as stage,
        stage.query("many", rate=500, parallelism=PARALLELISM, epoch_s=600.0) as counting,
    ):
        for turn in range(rounds):
            enough = time.monotonic() + 60.0 / SAMPLES_PER_MINUTE
            while time.monotonic() < enough:
                stage.engine.observe()
                time.sleep(max(0.0, min(1.0, enough - time.monotonic())))  # a cycle
            assert stage.engine.apply(Plan(cuts=(counting.name,))).ok
            now = {**resident_by_process(stage.spark.sparkContext.applicationId or ""), **heaps_mb(stage.spark)}
            for name, megabytes in now.items():
                found.setdefault(name, []).append(megabytes)
            say(f"minute {(turn + 1) / SAMPLES_PER_MINUTE:g}: {', '.join(f'{n} {m:.0f}' for n, m in now.items())} MB")
        exact = counting.verdict().exact
    early = slice(2 * SAMPLES_PER_MINUTE, 4 * SAMPLES_PER_MINUTE)
    late = slice(-2 * SAMPLES_PER_MINUTE, None)
    growth = {n: statistics.mean(v[late]) / statistics.mean(v[early]) for n, v in found.items() if len(v) == rounds}
    rounded = {n: [round(x, 1) for x in v] for n, v in found.items()}
    result = {
        "instances": sum(PARALLELISM.values()), "minutes": MINUTES, "exact": exact,
        "resident_mb": {n: v for n, v in rounded.items() if not n.startswith(HEAP)},
        "heap_mb": {n: v for n, v in rounded.items() if n.startswith(HEAP)},
        "growth": {n: round(g, 3) for n, g in growth.items()},
    }  # fmt: skip
    return finish(result, [Bar("largest growth of a process", max(growth.values()), at_most=1.05)])


def heaps_mb(spark: SparkSession) -> dict[str, float]:
    """Live heap, measured after a collection."""
    assert spark._jvm is not None
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    found = {f"{HEAP} driver": float(runtime.totalMemory() - runtime.freeMemory()) / 2**20}
    asked = "reflect('org.apache.spark.barograph.testing.HeapUse', 'afterCollection') as heap"
    for told in {str(row["heap"]) for row in spark.range(0, 24, 1, 24).selectExpr(asked).collect()}:
        executor, held = told.split()
        found[f"{HEAP} executor {executor}"] = int(held) / 2**20
    return found


def resident_by_process(application: str) -> dict[str, float]:
    """Memory of this process, its Java, and the executors of the application."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent, megabytes = parent_of(int(folder.name)), resident_mb(int(folder.name))
        except OSError:
            continue
        if int(folder.name) == os.getpid():
            found["python"] = megabytes
        elif application.encode() in words and b"--executor-id" in words:
            found["executor " + words[words.index(b"--executor-id") + 1].decode()] = megabytes
        elif parent == os.getpid() and any(b"SparkSubmit" in w for w in words):
            found["driver"] = megabytes
    return found
