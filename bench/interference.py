"""Topology A with a constant load beside B, whose load surges: A's p99 against the same beside an idle B.

Three nodes limited to half a core, the policy adaptive. One plan gives the instances of A and B the same places in all
cases, and the policy may then only change limits. In turn in one warm application: A beside B that has nothing to do; A
beside B that surges, by the default way to hold limits; and by the other ways, and without limits. The load of A is a
fifth of the cluster's capacity; that of B, with twice as many instances, alternates every 5 s between a tenth and one
and a half times the capacity: 0.8 of it on average. With A's 0.2 that is all there is, so that the surge is permanent
saturation: what B does not get through in a surge, it reads in the 5 s after it.

JSON: ``capacity_lines_s``; ``placement``: the slot of each instance, in every case; ``a_p99_ms``, ``a_mean_ms`` and
``b_out_words_s``, each a list over the rounds for ``idle`` and each way; ``causes``: for the same, what may have held
A's rows up (``_interference/causes.py``); ``in_force``: for the same, the ways in which the executors said, twice a
second, that they held limits; ``ratio``: by way, of each round that counts, A's p99 beside a surging B to A's beside an
idle one; ``not_counted``: rounds in which another way than the one that was asked for was in force, with the executors'
reasons, or in which an instance was elsewhere; they count for no way. Bars, by the default way: the median of the
ratios at most 1.2, none above 2, more than half of the rounds count; and five rounds, of 60 s for each case, so that a
shortened run does not pass. BENCH_ROUNDS (5) rounds of about seven minutes; BENCH_SECONDS (60) are measured of each
case.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from barograph.engines.latency import Histogram
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Plan
from barograph.testing.local_cluster import AUTO, PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, finish, say
from bench._interference.causes import causes, read
from bench._interference.in_force import IDLE, WAYS, InForce, not_counted, ratios
from bench._interference.places import by_index, limits_only, nodes_of, one_plan
from bench.boundary import measure_capacity

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
WARM_S, MEASURED_S = 20.0, float(os.environ.get("BENCH_SECONDS", "60"))
A_PART, B_LOW, B_HIGH = 0.2, 0.1, 1.5
B_INSTANCES = {"source": 4, "split": 4, "count": 6}
KINDS = (IDLE, *WAYS)
ROUNDS_BAR, MEASURED_BAR_S = 5, 60.0
STAY = {"cuts_per_hour": 0, "moves_per_hour": 0, "rescales_per_hour": 0}  # so that limits are made for these places
FIXED = QueryOptions(excluded=",".join(PARALLELISM))
Figures = dict[str, dict[str, list[float]]]
Causes = dict[str, list[dict[str, object]]]
Ways = dict[str, list[InForce]]


def bars(counted: Sequence[float], rounds: int, measured_s: float) -> list[Bar]:
    """By the default way. Without a round that counts there is no ratio."""
    name = "A's p99 beside a surging B to A's beside an idle one"
    whole = [
        Bar("rounds by the default way that count", len(counted), at_least=rounds // 2 + 1),
        Bar("number of rounds", rounds, at_least=ROUNDS_BAR),
        Bar("measured of each case, in seconds", measured_s, at_least=MEASURED_BAR_S),
    ]
    if not counted:
        return whole
    return [
        Bar(f"{name}, median", statistics.median(counted), at_most=1.2),
        Bar(f"{name}, worst", max(counted), at_most=2.0),
        *whole,
    ]


def main() -> int:
    found: Figures = {key: {kind: [] for kind in KINDS} for key in ("a_p99_ms", "a_mean_ms", "b_out_words_s")}
    in_force: Ways = {kind: [] for kind in KINDS}
    why: Causes = {kind: [] for kind in KINDS}
    with open_local_cluster(ClusterSettings(nodes=3, node_cpu=0.5, seats=8)) as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        stage.cluster.fence()
        capacity = measure_capacity(stage, warm_s=15.0)
        say(f"capacity {capacity:,.0f} lines/s")
        placement = by_index(plan_for(stage, "a", "b"), {"a": "a", "b": "b"})
        for turn in range(ROUNDS):
            for kind in KINDS:
                in_force[kind].append(one(stage, kind, turn, capacity, found, why[kind]))
    ratio, left_out = ratios(found["a_p99_ms"], in_force), not_counted(in_force)
    for sentence in left_out:
        say(sentence)
    result = {
        "capacity_lines_s": round(capacity),
        "placement": placement,
        **found,
        "causes": why,
        "in_force": {kind: [sorted(held.ways) for held in rounds] for kind, rounds in in_force.items()},
        "ratio": ratio,
        "not_counted": left_out,
    }
    return finish(result, bars(ratio[AUTO], ROUNDS, MEASURED_S))


def plan_for(stage: LocalCluster, a: str, b: str) -> Plan:
    return one_plan({a: PARALLELISM, b: B_INSTANCES}, sorted(w.slot for w in stage.engine.workers()))


def one(
    stage: LocalCluster, kind: str, turn: int, capacity: float, found: Figures, why: list[dict[str, object]]
) -> InForce:
    """One of the cases, from the start of its queries to their end. Names differ, so that no state is reused."""
    held = InForce()
    way = AUTO if kind == IDLE else kind
    stage.engine.enforce(way)
    surge = f"onoff high={round(B_HIGH * capacity)} low={round(B_LOW * capacity)} share=0.5 period=10s"
    names = f"a-{kind}-{turn}", f"b-{kind}-{turn}"
    for name in names:
        stage.engine.declare(name, FIXED)
    with ExitStack() as ending:
        a = ending.enter_context(stage.query(names[0], rate=round(A_PART * capacity), epoch_s=600.0))
        load = "constant 1" if kind == IDLE else surge
        b = ending.enter_context(stage.query(names[1], parallelism=B_INSTANCES, load=load, epoch_s=600.0))
        plan = plan_for(stage, *names)
        outcome = stage.engine.apply(plan)
        assert outcome.ok and not outcome.left_out, outcome
        planned = {i: slot.node for i, slot in plan.placement.slots.items()}
        ending.enter_context(limits_only(stage.supervisor))
        # Epochs keep their length: a boundary would disturb the measurement.
        steering = stage.steered("adaptive", enforce=way, guards=STAY, options={"mode": "cut"}, recovery_s=None)
        ending.enter_context(steering)
        look(a, WARM_S)

        def see() -> None:
            held.saw(stage.engine.live_executors)
            held.found({**nodes_of(stage.engine, a.name), **nodes_of(stage.engine, b.name)}, planned)

        began, before, out_before = read(stage, *names), stage.engine.latency(a.name, "due"), b.output()
        start = time.monotonic()
        look(a, MEASURED_S, see)
        latency = less(stage.engine.latency(a.name, "due"), before).latency()
        assert latency is not None
        out_s = (b.output() - out_before) / (time.monotonic() - start)
        why.append(causes(began, read(stage, *names), a.name))
        found["a_p99_ms"][kind].append(round(latency.p99, 1))
        found["a_mean_ms"][kind].append(round(latency.mean, 1))
        found["b_out_words_s"][kind].append(round(out_s))
        say(f"round {turn}, {kind}: A p99 {latency.p99:.0f} ms, mean {latency.mean:.1f} ms; B {out_s:,.0f} words/s")
        say(f"  {where(stage, a.name)} | {where(stage, b.name)}; limits by {held}")
        say(f"  {why[-1]}")
        return held


def look(counting: RunningQuery, seconds: float, each: Callable[[], None] = lambda: None) -> None:
    """each: called at every look."""
    end = time.monotonic() + seconds

    def is_over() -> bool:
        each()
        return time.monotonic() > end

    counting.settle(is_over, seconds + 60.0, look_s=0.5)


def less(now: Histogram, before: Histogram) -> Histogram:
    rows = {bucket: n - before.rows.get(bucket, 0) for bucket, n in now.rows.items()}
    return Histogram({b: n for b, n in rows.items() if n > 0}, now.sum_ms - before.sum_ms, now.max_ms)


def where(stage: LocalCluster, name: str) -> str:
    """The node and the CPU limit of each instance, on one line."""
    now = stage.engine.glance()
    limits = stage.engine.shares.limits_pct
    return ", ".join(
        f"{i.operator}/{i.index}@{slot.node}={limits.get(i, 100.0):g}%"
        for i, slot in sorted(now.placement.of_topology(name).slots.items())
    )


if __name__ == "__main__":
    sys.exit(main())
