"""How fast an order reaches a hundred executors, and what their mailboxes and reports cost the driver.

One executor simulates a hundred (``Crowd.scala``): each has its mailbox and reports once a second. JSON:
``executors``; ``reach_ms`` (order until the last has received it: median, worst, count); ``push_ms`` (the driver's
call); ``driver_cpu_pct`` of a core while they only report, and ``driver_cpu_pct_without`` them. Bar: all have received
it within 100 ms.
"""

import statistics
import time

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.testing.local_cluster import LocalCluster, open_local_cluster
from bench._figures import Bar, figures, finish
from bench._processes import cpu_s

EXECUTORS = 100
ORDERS = 50


def main() -> int:
    with open_local_cluster(ClusterSettings(nodes=1, seats=16)) as stage, stage.query("orders", rate=50) as counting:
        bridge = stage.engine._bridge
        player = stage.engine.observe().workers[0].executor
        idle_pct = driver_cpu_pct(stage, 10.0)
        ask(stage, f"'join', '{player}', {EXECUTORS}")
        crowded_pct = driver_cpu_pct(stage, 10.0)
        reach, push = [], []
        for _ in range(ORDERS):
            epoch = counting.epoch()
            ordered = time.time()
            bridge.order({}, [counting.name])
            push.append((time.time() - ordered) * 1000)
            assert bridge.await_epoch_after(counting.name, epoch, 60.0) is not None
            stage.engine.refresh()
            heard = max(int(h) for h in ask(stage, f"'lastHeard', '{player}'") if h)
            reach.append(heard - ordered * 1000)
    result = {
        "executors": EXECUTORS,
        "reach_ms": figures(reach),
        "push_ms": figures(push),
        "driver_cpu_pct": round(crowded_pct, 2),
        "driver_cpu_pct_without": round(idle_pct, 2),
    }
    return finish(result, [Bar("an order reaches a hundred executors, ms", statistics.median(reach), at_most=100.0)])


def ask(stage: LocalCluster, call: str) -> list[str]:
    expression = f"reflect('org.apache.spark.barograph.testing.Crowd', {call}) as answer"
    return [r["answer"] for r in stage.spark.range(0, 4, 1, 4).selectExpr(expression).collect()]


def driver_cpu_pct(stage: LocalCluster, seconds: float) -> float:
    """In per cent of a core, over ``seconds`` in which this process sends the driver no requests."""
    jvm = stage.spark._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    before, start = cpu_s(pid), time.monotonic()
    time.sleep(seconds)  # the measurement itself
    return 100 * (cpu_s(pid) - before) / (time.monotonic() - start)
