"""Lines a second that one core generates from a load; the source must never be the bottleneck of a run."""

import json
import sys
import time

from pyspark.sql import SparkSession

from barograph.engines.spark.conf import workloads_settings
from barograph.model import Load
from barograph.workloads.replay import FORMAT, Replay

BAR_LINES_PER_S = 500_000
SHAPES = ("constant 50000", "ramp 0s=1000 100s=99000", "random 1..25 x4000 every 1s seed=1")
SECONDS = 100


def main() -> int:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", workloads_settings()["spark.driver.extraClassPath"])
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    speeds = {shape: round(_lines_per_s(spark, shape)) for shape in SHAPES}
    spark.stop()
    for shape, speed in speeds.items():
        print(f"{shape:<40} {speed:>12,} lines/s", file=sys.stderr)
    ok = min(speeds.values()) >= BAR_LINES_PER_S
    print(json.dumps({"lines_per_s": speeds, "bar_lines_per_s": BAR_LINES_PER_S, "ok": ok}))
    return 0 if ok else 1


def _lines_per_s(spark: SparkSession, shape: str) -> float:
    replay = Replay(Load.parse(shape).schedule(SECONDS), close_s=SECONDS)
    lines = spark.read.format(FORMAT).options(**replay.options()).load()
    best_s = float("inf")
    for _ in range(3):  # the first also warms the JIT
        start = time.perf_counter()
        lines.selectExpr("sum(length(value))").collect()
        best_s = min(best_s, time.perf_counter() - start)
    return sum(replay.rows()) / best_s
