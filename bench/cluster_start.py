"""Start of three nodes: seconds and CPU seconds, with and without the daemons' class archive."""

import json
import os
import sys
import time

from barograph.engines.spark.cluster.class_archive import use_archive
from barograph.engines.spark.cluster.embedded import EmbeddedCluster, make_archive, start_cluster
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import CACHE_VARIABLE, cache_folder
from bench._processes import cpu_s

ROUNDS = 3
BAR = 0.75  # of the CPU seconds without an archive


def daemons_cpu_s(cluster: EmbeddedCluster) -> float:
    """CPU that master and workers have used since their start."""
    return sum(cpu_s(p.pid) for p in cluster.run.leaders.values())


def start() -> dict[str, float]:
    began = time.monotonic()
    with start_cluster(ClusterSettings(3)) as cluster:
        return {"up_s": round(time.monotonic() - began, 2), "cpu_s": round(daemons_cpu_s(cluster), 2)}


def main() -> int:
    if not use_archive(find_java()) and not make_archive():
        print("this Java has no class archives", file=sys.stderr)
        return 0
    full, empty = cache_folder(), cache_folder() / "empty"
    seen: dict[str, list[dict[str, float]]] = {"archive": [], "none": []}
    for _ in range(ROUNDS):  # in turn, so that other load on the machine affects both alike
        for name, cache in (("none", empty), ("archive", full)):
            os.environ[CACHE_VARIABLE] = str(cache)
            seen[name].append(start())
            print(name, seen[name][-1], file=sys.stderr)
    best = {name: min(one["cpu_s"] for one in found) for name, found in seen.items()}
    ratio = round(best["archive"] / best["none"], 3)
    print(json.dumps({"starts": seen, "cpu_ratio": ratio, "bar": BAR}))
    return 0 if ratio <= BAR else 1
