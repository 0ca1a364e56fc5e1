"""How fast an order reaches a hundred executors, and what their mailboxes and reports cost the driver.

One executor plays a hundred (``jvm/Crowd.scala``): each has its mailbox and reports once a second. JSON:
``executors``; ``reach_ms`` (order until the last has heard: median, worst, count); ``push_ms`` (the driver's call);
``driver_cpu_pct`` of a core while they only report, and ``driver_cpu_pct_without`` them. Bar: all have heard within
100 ms.
"""

import statistics
import time
from pathlib import Path

from barograph.engines.spark.settings import ClusterSettings
from barograph.experiments.stage import Stage, open_stage
from bench._figures import Bar, figures, finish

EXECUTORS = 100
ORDERS = 50


def main() -> int:
    with open_stage(ClusterSettings(nodes=1, seats=16)) as stage, stage.wordcount("orders", rate=50) as counting:
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


def ask(stage: Stage, call: str) -> list[str]:
    expression = f"reflect('org.apache.spark.barograph.Crowd', {call}) as answer"
    return [r["answer"] for r in stage.spark.range(0, 4, 1, 4).selectExpr(expression).collect()]


def driver_cpu_pct(stage: Stage, seconds: float) -> float:
    """Of a core, over a while in which nothing is asked of the driver from here."""
    jvm = stage.spark._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def used_s() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    before, start = used_s(), time.monotonic()
    time.sleep(seconds)  # the measurement itself
    return 100 * (used_s() - before) / (time.monotonic() - start)
