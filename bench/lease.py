"""What the fence of a checkpoint's lease costs: writing the two log entries of an epoch with and without it.

Bar: at most 1.5 times as long, both measured in turn in one process.
"""

import json
import os
import statistics
import tempfile

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from barograph.engines.spark.cluster.java import java_home
from barograph.testing.local_cluster import with_testing_jar

EPOCHS = 3000
WARM_UP = 1000
BAR = 1.5


def main() -> int:
    os.environ["JAVA_HOME"] = str(java_home())
    path = ("spark.driver.extraClassPath", with_testing_jar()["spark.driver.extraClassPath"])
    gateway = launch_gateway(SparkConf().setAll([path]))  # type: ignore[no-untyped-call]
    try:
        with tempfile.TemporaryDirectory(prefix="barograph-lease-") as folder:
            cost = gateway.jvm.org.apache.spark.barograph.testing.WriteCost
            took_us = [float(t) for t in cost.measure(folder, EPOCHS)]
    finally:
        gateway.shutdown()
    plain, fenced = took_us[2 * WARM_UP :: 2], took_us[2 * WARM_UP + 1 :: 2]
    found = {
        name: {
            "median_us": round(statistics.median(times), 1),
            "p99_us": round(sorted(times)[len(times) * 99 // 100], 1),
        }
        for name, times in (("plain", plain), ("fenced", fenced))
    }
    ratio = statistics.median(fenced) / statistics.median(plain)
    print(json.dumps({**found, "epochs": EPOCHS - WARM_UP, "ratio": round(ratio, 2), "bar": BAR}, indent=2))
    return 0 if ratio <= BAR else 1
