"""The cost of moving M instances under load, for every migration mode, with little state and with a million keys.

About 35 minutes; BENCH_REPEATS (2) makes it longer or shorter: the mode that the bar refers to is measured three times
as often, ``worker`` and the million keys once. JSON, by kind of instance (``stateless``:
split, ``stateful``: count, ``million``: count with 1,000,000 keys), way and M: ``pause_s`` (the longest gap in the
output) as median, worst and count, and ``degraded_s``: for 20, 40, 60, 80 and 100 %, seconds (in steps of 0.1) in which
at least that part of the stable output was missing, medians. ``exact``: no row lost, none counted twice, in each query.
Bar: ``cut`` of 16 stateless instances at most 1.3 times that of one.

``restart-app`` is measured by complete runs: the application is ended and another one continues from the checkpoint.
"""

import os
import random
import statistics
import time
from collections.abc import Mapping

from pyspark.sql import DataFrame

from barograph.engines.degraded import DEGRADED_PCT, steps_below
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Instance, MigrationMode, Placement, Plan, Slot
from barograph.testing.local_cluster import LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.lines import LineShape
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish, say
from bench._whole_run import is_exact, whole_run
from bench.boundary import gap_around

REPEATS = int(os.environ.get("BENCH_REPEATS", "2"))
JUDGED_REPEATS = 3 * REPEATS
SIZES = (1, 2, 4, 8, 16)
WAYS = ("cut", "warm-cut", "boundary", "restart-query", "worker")
RATE = 2_000
EPOCH_S = 10.0  # the longest wait of mode boundary
SETTLED_S, COLD_SETTLED_S = 1.0, 15.0  # new processes have to clear a backlog first
LONGEST_S = 60.0
KINDS = {
    "stateless": ("split", {"source": 2, "split": 16, "count": 2}),
    "stateful": ("count", {"source": 2, "split": 2, "count": 16}),
    "million": ("count", {"source": 2, "split": 2, "count": 16}),
}
MILLION_RATE = 8_000
MILLION_WAYS = ("cut", "warm-cut", "restart-query")
Found = dict[str, dict[int, dict[str, object]]]


def main() -> int:
    result: dict[str, object] = {"repeats": REPEATS}
    pauses: dict[int, float] = {}
    exact = True
    with open_local_cluster(ClusterSettings(nodes=3, seats=12)) as stage:
        warm_up(stage.spark, WORDCOUNT, {"source": 2, "split": 2, "count": 2})
        for kind, (operator, parallelism) in KINDS.items():
            found, was_exact = one_kind(stage, kind, operator, parallelism)
            result[kind] = {**found, "exact": was_exact}
            exact = exact and was_exact
            if kind == "stateless":
                pauses = {m: float(str(f["median_pause_s"])) for m, f in found["cut"].items()}
    result["restart-app"], app_exact = restart_app()
    bars = [
        Bar("cut of 16 stateless instances against one", pauses[16] / pauses[1], at_most=1.3),
        Bar("exact", float(exact and app_exact), at_least=1.0),
    ]
    return finish(result, bars)


def one_kind(stage: LocalCluster, kind: str, operator: str, parallelism: dict[str, int]) -> tuple[Found, bool]:
    draw = random.Random(3)
    million = kind == "million"
    lines = LineShape(seed=5, skew=0.0) if million else LineShape(seed=5)
    found: Found = {}
    with stage.query(
        kind, MILLION_RATE if million else RATE, parallelism, EPOCH_S, many_keys if million else same, True, lines
    ) as counting:
        if million:  # eight words a line: after this nearly every key has come once
            enough = counting.output() + 4_000_000
            counting.settle(lambda: counting.output() > enough, 180.0)
        for size in SIZES:  # warm-up, so that the order of the sizes does not matter
            one_move(counting, operator, size, MigrationMode.CUT, draw)
        for way in MILLION_WAYS if million else WAYS:
            found[way] = {}
            for size in SIZES:
                judged = kind == "stateless" and way == "cut"
                # New processes take half a minute; the case of the bar needs more than two moves.
                repeats = 1 if million or way == "worker" else JUDGED_REPEATS if judged else REPEATS
                warm = 0 if way == "worker" else 1  # new processes are always cold
                turns = [one_move(counting, operator, size, MigrationMode(way), draw) for _ in range(repeats + warm)]
                measured = turns[warm:]
                pauses = [t[0] for t in measured]
                found[way][size] = {
                    "pause_s": figures(pauses),
                    "median_pause_s": round(statistics.median(pauses), 3),
                    "degraded_s": {
                        str(d): round(statistics.median(t[1][d] for t in measured), 2) for d in DEGRADED_PCT
                    },
                }
                say(f"{kind} {way} M={size}: pause {statistics.median(pauses):.2f} s")
        return found, whole(counting) if million else counting.verdict().exact


def same(words: DataFrame) -> DataFrame:
    return words


def many_keys(words: DataFrame) -> DataFrame:
    """Each of the 2,000 words in 500 kinds: a million keys."""
    return words.selectExpr("* except (word)", "concat(word, '-', pmod(k, 500)) as word")


def one_move(
    counting: RunningQuery, operator: str, size: int, way: MigrationMode, draw: random.Random
) -> tuple[float, dict[int, float]]:
    """Move ``size`` random instances to other workers; returns the pause and the seconds of degraded output."""
    engine = counting.cluster.engine
    now = engine.observe()
    moved = draw.sample([i for i in now.placement if i.operator == operator], size)
    plan = Plan(Placement(elsewhere(counting.cluster, moved, draw)), mode=way)
    first = int(time.time() * 100)
    ordered_ms = time.time() * 1000
    outcome = engine.apply(plan)
    assert outcome.ok, outcome.refused
    if way is MigrationMode.BOUNDARY:  # ordered at once, it takes effect at the next regular epoch
        began = now.placement
        counting.settle(lambda: bool(counting.executors()) and engine.observe().placement != began, LONGEST_S)
    settled = int(time.time() * 100) + round((COLD_SETTLED_S if way is MigrationMode.WORKER else SETTLED_S) * 100)
    counting.settle(lambda: max(engine.output(counting.name)) >= settled, LONGEST_S)
    output = engine.output(counting.name)
    pause_ms, _ = gap_around(sorted(output), ordered_ms)
    return pause_ms / 1000, degraded(output, first, settled, counting)


def elsewhere(stage: LocalCluster, moved: list[Instance], draw: random.Random) -> dict[Instance, Slot]:
    """A free seat on another worker for each instance."""
    now = stage.engine.observe()
    seats = {w.slot: w.seats for w in now.workers}
    taken = {slot: sum(1 for s in now.placement.slots.values() if s == slot) for slot in seats}
    found: dict[Instance, Slot] = {}
    for instance in moved:
        here = now.placement[instance]
        free = [s for s in seats if s != here and taken[s] < seats[s]]
        there = draw.choice(free)
        taken[here] -= 1
        taken[there] += 1
        found[instance] = there
    return found


def degraded(output: Mapping[int, int], first: int, last: int, counting: RunningQuery) -> dict[int, float]:
    """Seconds, in steps of 0.1, in which at least that part of the stable output was missing."""
    stable = (MILLION_RATE if counting.name == "million" else RATE) * counting.inputs[0].lines.words_per_line / 10
    steps = [sum(output.get(t, 0) for t in range(at, at + 10)) for at in range(first, last, 10)]
    return {pct: count / 10 for pct, count in steps_below(steps, [stable] * len(steps)).items()}


def whole(counting: RunningQuery) -> bool:
    """A million keys are not compared one by one: the number of rows and their checksum must match."""
    assert counting.cluster.engine.apply(Plan(cuts=(counting.name,))).ok
    counting.query.stop()
    due = counting.due()
    state = counting.cluster.spark.read.format("statestore").load(str(counting.checkpoint))
    row = state.selectExpr("sum(value.count) as rows", "bit_xor(value.bit_xor) as checksum", "count(1) as keys").first()
    assert row is not None
    checksum = 0
    for part in due.checksums.values():
        checksum ^= part
    say(f"{row['keys']} keys, {row['rows']} rows")
    same_checksum = (row["checksum"] - checksum) % (1 << 64) == 0
    return bool(row["rows"] == sum(due.occurrences.values()) and same_checksum)


def restart_app() -> tuple[dict[str, object], bool]:
    """One and sixteen instances, each in a complete run."""
    found: dict[str, object] = {}
    exact = True
    for size in (1, 16):
        moves = [word for i in range(size) for word in ("--at", f"20:move split/{i}=node-{i % 3 + 1}")]
        report, said = whole_run(
            "wordcount", "--seconds", "60", "--load", f"constant {RATE}", "--parallelism", "source=2,split=16,count=2",
            "--node-cpu", "0.66", "--migration", "restart-app", *moves,
        )  # fmt: skip
        if report is None:
            say(said)
            return {**found, f"{size}": "it failed"}, False
        exact = exact and is_exact(report)
        found[f"{size}"] = {"pause_s": report["longest_pause_s"]}
        say(f"restart-app M={size}: pause {report['longest_pause_s']:.2f} s")
    return found, exact
