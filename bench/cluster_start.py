"""Three nodes up: seconds and CPU seconds, with and without the daemons' class archive."""

import json
import os
import sys
import time
from pathlib import Path

from barograph.engines.spark.archive import use_archive
from barograph.engines.spark.embedded import EmbeddedCluster, make_archive, start_cluster
from barograph.engines.spark.folders import CACHE_VARIABLE, cache_folder
from barograph.engines.spark.java import find_java
from barograph.engines.spark.settings import ClusterSettings

ROUNDS = 3
BAR = 0.75  # of the CPU seconds without an archive


def cpu_s(cluster: EmbeddedCluster) -> float:
    """CPU that master and workers have used since they began."""
    stats = (Path(f"/proc/{p.pid}/stat").read_text() for p in cluster.run.leaders.values())
    ticks = sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats)
    return ticks / os.sysconf("SC_CLK_TCK")


def start() -> dict[str, float]:
    began = time.monotonic()
    with start_cluster(ClusterSettings(3)) as cluster:
        return {"up_s": round(time.monotonic() - began, 2), "cpu_s": round(cpu_s(cluster), 2)}


def main() -> int:
    if not use_archive(find_java()) and not make_archive():
        print("this Java has no class archives", file=sys.stderr)
        return 0
    full, empty = cache_folder(), cache_folder() / "empty"
    seen: dict[str, list[dict[str, float]]] = {"archive": [], "none": []}
    for _ in range(ROUNDS):  # in turn, so that what else the machine does meets both alike
        for name, cache in (("none", empty), ("archive", full)):
            os.environ[CACHE_VARIABLE] = str(cache)
            seen[name].append(start())
            print(name, seen[name][-1], file=sys.stderr)
    best = {name: min(one["cpu_s"] for one in found) for name, found in seen.items()}
    ratio = round(best["archive"] / best["none"], 3)
    print(json.dumps({"starts": seen, "cpu_ratio": ratio, "bar": BAR}))
    return 0 if ratio <= BAR else 1
