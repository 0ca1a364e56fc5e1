"""Whether metering leaks: memory of driver and executors over ten minutes of 200 instances, looked at once a second.

BENCH_MINUTES (10) says how long. JSON: ``resident_mb``: per process its memory at each half minute; ``heap_mb``: what
the driver's heap holds after a collection, likewise; ``growth``: per process the mean of the last two minutes against
that of minutes 3 and 4, when code is compiled and pools are filled. Bar: the largest growth at most 1.05.
"""

import os
import statistics
import sys
import time
from pathlib import Path

from barograph.engines.spark.settings import ClusterSettings
from barograph.experiments.stage import open_stage
from bench._figures import Bar, finish

MINUTES = float(os.environ.get("BENCH_MINUTES", "10"))
PARALLELISM = {"source": 20, "split": 90, "count": 90}
SAMPLES_PER_MINUTE = 2


def main() -> int:
    rounds = round(MINUTES * SAMPLES_PER_MINUTE)
    found: dict[str, list[float]] = {}
    heaps = []
    with (
        open_stage(ClusterSettings(nodes=3, seats=80)) as stage,
        stage.wordcount("many", rate=500, parallelism=PARALLELISM, epoch_s=30.0) as counting,
    ):
        for turn in range(rounds):
            enough = time.monotonic() + 60.0 / SAMPLES_PER_MINUTE
            while time.monotonic() < enough:
                stage.engine.observe()
                time.sleep(max(0.0, min(1.0, enough - time.monotonic())))  # a cycle
            for name, megabytes in resident_mb(stage.spark.sparkContext.applicationId or "").items():
                found.setdefault(name, []).append(megabytes)
            heaps.append(heap_mb(stage.spark))
            minute = (turn + 1) / SAMPLES_PER_MINUTE
            say(f"minute {minute:g}: {found_last(found)}, driver's heap {heaps[-1]:.0f} MB")
        exact = counting.verdict().exact
    early = slice(2 * SAMPLES_PER_MINUTE, 4 * SAMPLES_PER_MINUTE)
    late = slice(-2 * SAMPLES_PER_MINUTE, None)
    growth = {n: statistics.mean(v[late]) / statistics.mean(v[early]) for n, v in found.items() if len(v) == rounds}
    result = {
        "instances": sum(PARALLELISM.values()), "minutes": MINUTES, "exact": exact,
        "resident_mb": {n: [round(x) for x in v] for n, v in found.items()},
        "heap_mb": [round(x) for x in heaps], "growth": {n: round(g, 3) for n, g in growth.items()},
    }  # fmt: skip
    return finish(result, [Bar("largest growth of a process", max(growth.values()), at_most=1.05)])


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def found_last(found: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {values[-1]:.0f} MB" for name, values in found.items())


def heap_mb(spark) -> float:  # type: ignore[no-untyped-def]
    """What is still needed: measured after a collection."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def resident_mb(application: str) -> dict[str, float]:
    """Memory of this process, its Java, and the executors of the application."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            megabytes = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        except OSError:
            continue
        if int(folder.name) == os.getpid():
            found["python"] = megabytes
        elif application.encode() in words and b"--executor-id" in words:
            found["executor " + words[words.index(b"--executor-id") + 1].decode()] = megabytes
        elif parent == os.getpid() and any(b"SparkSubmit" in w for w in words):
            found["driver"] = megabytes
    return found
