"""What looking costs the driver: CPU of its Python and of its JVM, with 200 instances, looked at once a second.

One executor reports the instances as if ten executors ran them (``CrowdedTopology.scala``). Another process looks
through the driver's endpoint, as a controller does. Windows in which it looks alternate with windows in which it
does not; the difference of the medians is what looking costs. CPU is user and system time from /proc. BENCH_PAIRS (4)
and BENCH_WINDOW_S (12) say how many pairs of windows, and how long each is. JSON: ``instances``; ``looks``;
``python_ms`` and ``jvm_ms`` for each look; ``python_pct`` and ``jvm_pct`` of a core while it looks and
``..._without``. Bars: each look costs Python and the JVM at most 15 ms each.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.priority.service import serve
from barograph.testing.local_cluster import LocalCluster, open_local_cluster
from bench._figures import Bar, finish, say
from bench._processes import cpu_s

PAIRS = int(os.environ.get("BENCH_PAIRS", "4"))
WINDOW_S = float(os.environ.get("BENCH_WINDOW_S", "12"))
PLAYERS = 10
PARALLELISM = (60, 60, 80)
WARM_LOOKS = 150  # so that the JVM has compiled what looking runs
CYCLE_S = 1.0
CROWD = "org.apache.spark.barograph.testing.CrowdedTopology"


def main() -> int:
    with open_local_cluster(ClusterSettings(nodes=1, seats=16)) as stage, stage.query("observed", rate=50) as counting:
        path = (stage.supervisor.endpoint or serve(stage.supervisor)).path
        play(stage, str(counting.query.runId))
        pids = driver_pids(stage)
        look(path, WARM_LOOKS, 0.02)
        found: dict[bool, list[list[float]]] = {True: [], False: []}
        looks = 0
        for pair in range(PAIRS):
            for looking in (True, False) if pair % 2 == 0 else (False, True):
                used, looked = window(path, pids, looking)
                looks += looked
                found[looking].append(used)
                say(f"{'looking' if looking else 'not looking'}: python {used[0]:.2f} %, JVM {used[1]:.2f} % of a core")
    result: dict[str, object] = {"instances": sum(PARALLELISM), "looks": looks}
    bars = []
    for i, name in enumerate(("python", "jvm")):
        with_pct, without_pct = (statistics.median(w[i] for w in found[looking]) for looking in (True, False))
        ms = 10.0 * (with_pct - without_pct) * CYCLE_S
        result |= {f"{name}_ms": round(ms, 2), f"{name}_pct": round(with_pct, 2)}
        result |= {f"{name}_pct_without": round(without_pct, 2)}
        bars.append(Bar(f"{name}: CPU of a look at 200 instances, ms", ms, at_most=15.0))
    return finish(result, bars)


def play(stage: LocalCluster, run: str) -> None:
    """Register the topology, have it reported, and wait until it is seen."""
    worker = stage.engine.observe().workers[0]
    host, jvm = stage.cluster.settings.addresses()["node-1"], stage.spark._jvm
    assert jvm is not None
    crowd = jvm
    for part in CROWD.split("."):
        crowd = getattr(crowd, part)
    crowd.register(run, worker.executor, host, *PARALLELISM)
    call = f"reflect('{CROWD}', 'play', '{worker.executor}', '{run}', {PLAYERS}, {', '.join(map(str, PARALLELISM))})"
    deadline = time.monotonic() + 60
    while stage.engine.observe().metrics.of_operator("crowd", "sink").executed == 0:
        if time.monotonic() > deadline:
            raise TimeoutError("the crowded topology was not seen within 60 s")
        stage.spark.range(0, 4, 1, 4).selectExpr(f"{call} as here").collect()
        time.sleep(0.5)


def driver_pids(stage: LocalCluster) -> tuple[int, int]:
    jvm = stage.spark._jvm
    assert jvm is not None
    return os.getpid(), int(jvm.java.lang.ProcessHandle.current().pid())


def window(path: Path, pids: tuple[int, int], looking: bool) -> tuple[list[float], int]:
    """CPU in per cent of a core, of Python and of the JVM, and how often it was looked."""
    looks = round(WINDOW_S / CYCLE_S) if looking else 0
    child = looker(path, looks, CYCLE_S) if looking else None
    before, start = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(WINDOW_S)  # the measurement itself
    used = [100 * (cpu_s(pid) - b) / (time.monotonic() - start) for pid, b in zip(pids, before, strict=True)]
    if child is not None:
        finish_child(child)
    return used, looks


def look(path: Path, times: int, every_s: float) -> None:
    finish_child(looker(path, times, every_s))


def looker(path: Path, times: int, every_s: float) -> "subprocess.Popen[str]":
    """A process that is connected when this returns."""
    command = [sys.executable, "-m", "bench.observe", str(path), str(times), str(every_s)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def finish_child(child: "subprocess.Popen[str]") -> None:
    if child.wait(120) != 0:
        raise RuntimeError(f"the process that looks ended with code {child.returncode}")


def look_from_elsewhere(path: Path, times: int, every_s: float) -> None:
    engine = RemoteEngine(path)
    engine.observe()
    print("ready", flush=True)
    due = time.monotonic()
    for _ in range(times):
        due += every_s
        time.sleep(max(0.0, due - every_s / 2 - time.monotonic()))
        assert len(engine.observe().metrics.instances) >= sum(PARALLELISM)
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    look_from_elsewhere(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
