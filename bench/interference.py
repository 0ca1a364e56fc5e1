"""Topology A with a constant load beside B, whose load exceeds the rest of the cluster, with and without CPU limits.

Three nodes limited to half a core, the policy adaptive, its first placement kept (moves would disturb the measurement).
In turn in one warm application: A alone; A beside B with CPU limits; A beside B without. The load of A is a fifth of
the cluster's capacity; that of B, with twice as many instances, alternates every 5 s between a tenth and one and a half
times the capacity.

JSON: ``capacity_lines_s``; ``a_p99_ms``, ``a_mean_ms`` and ``b_out_words_s``, each a list over the rounds for
``alone``, ``enforced`` and ``unenforced``; ``ratio``: the median over rounds of A's p99 beside B to A's alone, with
and without limits. Bar: with limits at most 1.2. About two minutes a round; BENCH_ROUNDS changes their number (3).
"""

import os
import statistics
import sys
import time
from contextlib import ExitStack

from barograph.engines.latency import Histogram
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.experiments.running.warm_up import warm_up
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, finish, say
from bench.boundary import measure_capacity

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
WARM_S, MEASURED_S = 20.0, float(os.environ.get("BENCH_SECONDS", "20"))
A_PART, B_LOW, B_HIGH = 0.2, 0.1, 1.5
B_INSTANCES = {"source": 4, "split": 4, "count": 6}
KINDS = ("alone", "enforced", "unenforced")
STAY = {"cuts_per_hour": 0, "moves_per_hour": 0, "rescales_per_hour": 0}  # the first plan of all is free
Figures = dict[str, dict[str, list[float]]]


def main() -> int:
    found: Figures = {key: {kind: [] for kind in KINDS} for key in ("a_p99_ms", "a_mean_ms", "b_out_words_s")}
    with open_local_cluster(ClusterSettings(nodes=3, node_cpu=0.5, seats=8)) as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        stage.cluster.fence()
        capacity = measure_capacity(stage, warm_s=15.0)
        say(f"capacity {capacity:,.0f} lines/s")
        for turn in range(ROUNDS):
            for kind in KINDS:
                one(stage, kind, turn, capacity, found)
    p99 = found["a_p99_ms"]
    ratio = {
        kind: round(statistics.median(b / a for a, b in zip(p99["alone"], p99[kind], strict=True)), 3)
        for kind in KINDS[1:]
    }
    result = {"capacity_lines_s": round(capacity), **found, "ratio": ratio}
    return finish(result, [Bar("A's p99 with limits against A alone", ratio["enforced"], at_most=1.2)])


def one(stage: LocalCluster, kind: str, turn: int, capacity: float, found: Figures) -> None:
    """One of the three cases, from the start of its queries to their end. Names differ, so that no state is reused."""
    with ExitStack() as ending:
        a = ending.enter_context(stage.query(f"a-{kind}-{turn}", rate=round(A_PART * capacity), epoch_s=600.0))
        b: RunningQuery | None = None
        if kind != "alone":
            shape = f"onoff high={round(B_HIGH * capacity)} low={round(B_LOW * capacity)} share=0.5 period=10s"
            name = f"b-{kind}-{turn}"
            b = ending.enter_context(stage.query(name, parallelism=B_INSTANCES, load=shape, epoch_s=600.0))
        enforce = kind != "unenforced"
        # Epochs keep their length: a boundary would disturb the measurement.
        steering = stage.steered("adaptive", enforce=enforce, guards=STAY, options={"mode": "cut"}, recovery_s=None)
        ending.enter_context(steering)
        look(a, WARM_S)
        before, out_before = stage.engine.latency(a.name, "due"), 0 if b is None else b.output()
        start = time.monotonic()
        look(a, MEASURED_S)
        latency = less(stage.engine.latency(a.name, "due"), before).latency()
        assert latency is not None
        out_s = 0.0 if b is None else (b.output() - out_before) / (time.monotonic() - start)
        found["a_p99_ms"][kind].append(round(latency.p99, 1))
        found["a_mean_ms"][kind].append(round(latency.mean, 1))
        found["b_out_words_s"][kind].append(round(out_s))
        say(f"round {turn}, {kind}: A p99 {latency.p99:.0f} ms, mean {latency.mean:.1f} ms; B {out_s:,.0f} words/s")
        say(f"  {where(stage, a.name)}" + ("" if b is None else f" | {where(stage, b.name)}"))


def look(counting: RunningQuery, seconds: float) -> None:
    end = time.monotonic() + seconds
    counting.settle(lambda: time.monotonic() > end, seconds + 60.0)


def less(now: Histogram, before: Histogram) -> Histogram:
    rows = {bucket: n - before.rows.get(bucket, 0) for bucket, n in now.rows.items()}
    return Histogram({b: n for b, n in rows.items() if n > 0}, now.sum_ms - before.sum_ms, now.max_ms)


def where(stage: LocalCluster, name: str) -> str:
    """The node and the CPU limit of each instance, on one line."""
    now = stage.engine.glance()
    shares = {} if stage.engine.limits is None else stage.engine.limits.ordered_pct
    return ", ".join(
        f"{i.operator}/{i.index}@{slot.node}={shares.get(i, 0):g}%"
        for i, slot in sorted(now.placement.of_topology(name).slots.items())
    )


if __name__ == "__main__":
    sys.exit(main())
