"""What a cut, a move and a rescale cost on a warm three-node cluster, at half and at twice its capacity.

JSON: ``capacity_lines_s``; per load and kind of change ``order_to_commit_s`` and ``gap_s`` (median, worst, count) and
``parts_s``, the medians of the parts of that time: ``stop`` (order until the last source has stopped reading),
``drain`` (until the last instance has ended), ``commit`` (until the next epoch is planned), ``launch`` (until its last
instance runs), ``first_row`` (until the first row is out). ``settings``: throughput with Barograph's settings against
Spark's own, [Barograph's, Spark's] for each pair, and the median of their ratios. ``latency_ms``: by lines a second,
medians of the p50 of the second before a cut and of the second that begins one second after it. Bars: median gap 0.5 s
at half load, 1 s in overload; throughput ratio 0.98; p50 after a cut at most 3 ms and a quarter above that before it.
"""

import random
import statistics
import time
from itertools import pairwise

from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.conf import tuned_settings
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Instance, Placement, Plan, Rescale
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish, say

REPEATS = 20
PAIRS = 8
WARM_TURNS = 4
RATES_LINES_S = (10, 240, 33_000)  # at low rates a buffer that waits to be filled adds most
CUTS = 10
SPARKS_OWN = {
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "50",
    "spark.shuffle.streaming.networkBufferSize": str(32 << 10),
    "spark.shuffle.streaming.readerMaxMemory": str(32 << 20),
    "spark.shuffle.streaming.writerMaxMemory": str(32 << 20),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.barograph.inFlightMs": "0",
}
Parts = dict[str, float]


def main() -> int:
    result: dict[str, object] = {}
    with open_local_cluster() as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        capacity = measure_capacity(stage, warm_s=20.0)
        result["capacity_lines_s"] = round(capacity)
        say(f"capacity {capacity:,.0f} lines/s")
        half = changes(stage, capacity * 0.5)
        result["half_load"] = summary(half)
        over = changes(stage, capacity * 2.0)
        result["overload"] = summary(over)
        medians_ms = {rate: latency_around_cuts(stage, rate) for rate in RATES_LINES_S}
        result["latency_ms"] = {str(rate): [round(ms, 1) for ms in both] for rate, both in medians_ms.items()}
        pairs = settings_ratio(stage)
    ratio = statistics.median(ours / sparks for ours, sparks in pairs)
    result["settings"] = {"lines_s": [[round(x) for x in p] for p in pairs], "ratio": round(ratio, 3)}
    bars = [
        Bar("median gap at half load, s", gap_of(half), at_most=0.5),
        Bar("median gap in overload, s", gap_of(over), at_most=1.0),
        Bar("throughput with Barograph's settings against Spark's own", ratio, at_least=0.98),
        *(
            Bar(f"p50 a second after a cut at {rate:,} lines/s, ms", after_ms, at_most=3.0 + 1.25 * before_ms)
            for rate, (before_ms, after_ms) in medians_ms.items()
        ),
    ]
    return finish(result, bars)


def measure_capacity(stage: LocalCluster, seconds: float = 10.0, warm_s: float = 0.0) -> float:
    """Lines a second under overload: those that reached the sink, not those still in queues."""
    with stage.query("capacity", rate=1_000_000) as counting:
        enough = time.monotonic() + max(2.0, warm_s)
        counting.settle(lambda: time.monotonic() > enough, 120.0)
        first = int(time.time() * 100) + 1
        last = first + round(seconds * 100)
        # Rows are counted by the time at which they left; the last ones are reported a moment later.
        counting.settle(lambda: time.time() * 100 > last + 200, seconds + 60.0)
        words = sum(
            rows for centisecond, rows in stage.engine.output("capacity").items() if first <= centisecond < last
        )
        return words / counting.inputs[0].lines.words_per_line / seconds


def changes(stage: LocalCluster, rate: float) -> dict[str, list[Parts]]:
    """Twenty of each kind, in turn, each after the output has resumed."""
    draw = random.Random(1)
    found: dict[str, list[Parts]] = {"cut": [], "move": [], "rescale": []}
    name = f"boundary-{round(rate)}"
    with stage.query(name, rate=round(rate)) as counting:
        splits = 2
        for turn in range(REPEATS + WARM_TURNS):
            for kind in found:
                plan, splits = next_plan(stage, name, kind, splits, draw)
                parts = one_change(counting, plan)
                if turn >= WARM_TURNS:  # the first turns warm this query up
                    found[kind].append(parts)
            say(f"{rate:,.0f} lines/s, turn {turn}: gap {parts['gap']:.2f} s")
    return found


def latency_around_cuts(stage: LocalCluster, rate: int) -> tuple[float, float]:
    """Medians, in milliseconds, of the p50 of a second before each cut and of one that begins a second after it."""

    def p50_ms() -> float | None:
        stage.engine.observe()
        _pass(1.0)
        found = [m.latency_due for m in stage.engine.observe().topology_metrics if m.topology == name]
        return found[0].p50 if found and found[0] is not None else None

    def _pass(seconds: float) -> None:
        enough = time.monotonic() + seconds
        counting.settle(lambda: time.monotonic() > enough, 60.0)

    name = f"latency-{rate}"
    before_ms, after_ms = [], []
    with stage.query(name, rate=rate) as counting:
        _pass(10.0)  # until its code is compiled
        for _ in range(CUTS):
            before = p50_ms()
            outcome = stage.engine.apply(Plan(cuts=(name,)))
            assert outcome.ok, outcome.refused
            _pass(1.0)
            after = p50_ms()
            if before is not None and after is not None:
                before_ms.append(before)
                after_ms.append(after)
    found = statistics.median(before_ms), statistics.median(after_ms)
    say(f"{rate:,} lines/s: p50 {found[0]:.1f} ms before a cut, {found[1]:.1f} ms a second after it")
    return found


def next_plan(stage: LocalCluster, name: str, kind: str, splits: int, draw: random.Random) -> tuple[Plan, int]:
    now = stage.engine.observe()
    if kind == "cut":
        return Plan(cuts=(name,)), splits
    if kind == "rescale":
        wanted = 3 if splits == 2 else 2
        return Plan(rescales=(Rescale(name, "split", wanted),)), wanted
    instance = Instance(name, draw.choice(["split", "count"]), draw.randrange(2))
    where = draw.choice([w.slot for w in now.workers if w.slot != now.placement[instance]])
    return Plan(Placement({instance: where})), splits


def one_change(counting: RunningQuery, plan: Plan) -> Parts:
    engine = counting.cluster.engine
    before = engine.present(counting.name)
    assert before is not None
    ordered_ms = time.time() * 1000
    outcome = engine.apply(plan)
    assert outcome.ok, outcome.refused
    # Wait until rows have flowed for a while, so that every report of this boundary has arrived.
    settled_cs = int(time.time() * 100) + 60
    counting.settle(lambda: max(engine.output(counting.name)) >= settled_cs, 60.0)
    output = engine.output(counting.name)
    after = engine.present(counting.name)
    assert after is not None
    return parts_of(ordered_ms, before, after, sorted(output), outcome.order_to_commit_s or 0.0)


def gap_around(centiseconds: list[int], ordered_ms: float) -> tuple[float, float]:
    """The longest gap in the output after an order, and when it ended; milliseconds. centiseconds: with output."""
    before_ms = ordered_ms - 500  # a gap before the order does not count
    found = ((t * 10, u * 10) for t, u in pairwise(centiseconds) if u * 10 > before_ms)
    return max((b - max(a, before_ms), b) for a, b in found)


def parts_of(ordered_ms: float, before: EpochSeen, after: EpochSeen, centiseconds: list[int], commit_s: float) -> Parts:
    """Split the time of one boundary into parts; all clocks are those of this machine."""
    ends = [life.ended_ms for life in before.lives.values()]
    source_ends = [life.ended_ms for i, life in before.lives.items() if i.operator == "source"]
    started_ms = max(life.started_ms for life in after.lives.values())
    gap_ms, resumed_ms = gap_around(centiseconds, ordered_ms)
    return {
        "order_to_commit": commit_s,
        "gap": gap_ms / 1000,
        "stop": (max(source_ends) - ordered_ms) / 1000,
        "drain": (max(ends) - max(source_ends)) / 1000,
        "commit": (after.planned_ms - max(ends)) / 1000,
        "launch": (started_ms - after.planned_ms) / 1000,
        "first_row": (resumed_ms - started_ms) / 1000,
    }


def summary(found: dict[str, list[Parts]]) -> dict[str, object]:
    return {
        kind: {
            "order_to_commit_s": figures([p["order_to_commit"] for p in parts]),
            "gap_s": figures([p["gap"] for p in parts]),
            "parts_s": {
                name: round(statistics.median(p[name] for p in parts), 3)
                for name in ("stop", "drain", "commit", "launch", "first_row")
            },
        }
        for kind, parts in found.items()
    }


def gap_of(found: dict[str, list[Parts]]) -> float:
    return statistics.median(p["gap"] for parts in found.values() for p in parts)


def settings_ratio(stage: LocalCluster) -> list[tuple[float, float]]:
    """Throughput under overload, with Barograph's and Spark's settings in turn, in one warm application."""
    found = []
    for turn in range(PAIRS):
        both = [(0, tuned_settings()), (1, SPARKS_OWN)]
        pair = [0.0, 0.0]
        for which, settings in both if turn % 2 == 0 else reversed(both):
            stage.turn(settings)
            pair[which] = measure_capacity(stage, 8.0)
        found.append((pair[0], pair[1]))
        say(f"ours {pair[0]:,.0f}, Spark's own {pair[1]:,.0f} lines/s")
    return found
