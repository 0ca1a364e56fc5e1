"""What moving M instances costs under load, in every way there is, with little state and with a million keys.

About 35 minutes; BENCH_REPEATS (2) makes it longer or shorter: the way that the bar is about is measured three times
as often, ``worker`` and the million keys once. JSON, by kind of instance (``stateless``:
split, ``stateful``: count, ``million``: count with 1,000,000 keys), way and M: ``pause_s`` (the longest gap in the
output) as median, worst and count, and ``degraded_s``: for 20, 40, 60, 80 and 100 %, seconds (in steps of 0.1) in which
at least that part of the stable output was missing, medians. ``exact``: no row lost, none counted twice, in each query.
Bar: ``cut`` of 16 stateless instances at most 1.3 times that of one.

``restart-app`` is measured by whole runs: the application is ended and another one goes on from the checkpoint.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Mapping

from pyspark.sql import DataFrame

from barograph.engines.degraded import DEGRADED_PCT, steps_below
from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.settings import ClusterSettings
from barograph.experiments.stage import Counting, Stage, open_stage
from barograph.experiments.warm import warm_up
from barograph.model import Instance, MigrationMode, Placement, Plan, Slot
from barograph.workloads.lines import LineShape
from barograph.workloads.truth import truth_by_spark
from bench._figures import Bar, figures, finish
from bench._whole_run import is_exact, whole_run
from bench.boundary import gap_around

REPEATS = int(os.environ.get("BENCH_REPEATS", "2"))
JUDGED_REPEATS = 3 * REPEATS
SIZES = (1, 2, 4, 8, 16)
WAYS = ("cut", "warm-cut", "boundary", "restart-query", "worker")
RATE = 2_000
EPOCH_S = 10.0  # what boundary waits for at most
SETTLED_S, COLD_SETTLED_S = 1.0, 15.0  # new processes have a backlog to make up for
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
    with open_stage(ClusterSettings(nodes=3, seats=12)) as stage:
        warm_up(stage.spark, {"source": 2, "split": 2, "count": 2})
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


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def one_kind(stage: Stage, kind: str, operator: str, parallelism: dict[str, int]) -> tuple[Found, bool]:
    draw = random.Random(3)
    million = kind == "million"
    lines = LineShape(seed=5, skew=0.0) if million else LineShape(seed=5)
    found: Found = {}
    with stage.wordcount(
        kind, MILLION_RATE if million else RATE, parallelism, EPOCH_S, many_keys if million else same, True, lines
    ) as counting:
        if million:  # eight words a line: after this nearly every key has come once
            enough = counting.output() + 4_000_000
            counting.settle(lambda: counting.output() > enough, 180.0)
        for size in SIZES:  # before anything is measured: the sizes would else differ by their order
            one_move(counting, operator, size, MigrationMode.CUT, draw)
        for way in MILLION_WAYS if million else WAYS:
            found[way] = {}
            for size in SIZES:
                judged = kind == "stateless" and way == "cut"
                # New processes take half a minute; what a bar is about is not left to two moves.
                repeats = 1 if million or way == "worker" else JUDGED_REPEATS if judged else REPEATS
                warm = 0 if way == "worker" else 1  # and are always cold
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
    counting: Counting, operator: str, size: int, way: MigrationMode, draw: random.Random
) -> tuple[float, dict[int, float]]:
    """Move so many random instances elsewhere; the pause, and for how long how much was missing."""
    engine = counting.stage.engine
    now = engine.observe()
    who = draw.sample([i for i in now.placement if i.operator == operator], size)
    plan = Plan(Placement(elsewhere(counting.stage, who, draw)), mode=way)
    first = int(time.time() * 100)
    ordered_ms = time.time() * 1000
    outcome = engine.apply(plan)
    assert outcome.ok, outcome.refused
    if way is MigrationMode.BOUNDARY:  # ordered at once, it holds from the next regular epoch on
        began = now.placement
        counting.settle(lambda: bool(counting.executors()) and engine.observe().placement != began, LONGEST_S)
    output = engine.sight.output[counting.name]
    settled = int(time.time() * 100) + round((COLD_SETTLED_S if way is MigrationMode.WORKER else SETTLED_S) * 100)
    counting.settle(lambda: max(output) >= settled, LONGEST_S)
    pause_ms, _ = gap_around(sorted(output), ordered_ms)
    return pause_ms / 1000, degraded(output, first, settled, counting)


def elsewhere(stage: Stage, who: list[Instance], draw: random.Random) -> dict[Instance, Slot]:
    """A seat on another worker for each, so that no worker gets too full."""
    now = stage.engine.observe()
    seats = {w.slot: w.seats for w in now.workers}
    taken = {slot: sum(1 for s in now.placement.slots.values() if s == slot) for slot in seats}
    found: dict[Instance, Slot] = {}
    for instance in who:
        here = now.placement[instance]
        free = [s for s in seats if s != here and taken[s] < seats[s]]
        there = draw.choice(free)
        taken[here] -= 1
        taken[there] += 1
        found[instance] = there
    return found


def degraded(output: Mapping[int, int], first: int, last: int, counting: Counting) -> dict[int, float]:
    """Seconds, in steps of 0.1, in which at least so much of the stable output was missing."""
    stable = (MILLION_RATE if counting.name == "million" else RATE) * counting.replay.lines.words_per_line / 10
    steps = [sum(output.get(t, 0) for t in range(at, at + 10)) for at in range(first, last, 10)]
    return {pct: count / 10 for pct, count in steps_below(steps, [stable] * len(steps)).items()}


def whole(counting: Counting) -> bool:
    """A million keys are not compared one by one: all rows together must be there once, and no other."""
    assert counting.stage.engine.apply(Plan(cuts=(counting.name,))).ok
    counting.query.stop()
    due = truth_by_spark(counting.stage.spark, counting.replay, committed_offsets(counting.checkpoint))
    state = counting.stage.spark.read.format("statestore").load(str(counting.checkpoint))
    row = state.selectExpr("sum(value.count) as rows", "bit_xor(value.bit_xor) as checksum", "count(1) as keys").first()
    assert row is not None
    checksum = 0
    for part in due.checksums.values():
        checksum ^= part
    say(f"{row['keys']} keys, {row['rows']} rows")
    same_checksum = (row["checksum"] - checksum) % (1 << 64) == 0
    return bool(row["rows"] == sum(due.occurrences.values()) and same_checksum)


def restart_app() -> tuple[dict[str, object], bool]:
    """One and sixteen instances by whole runs of their own."""
    found: dict[str, object] = {}
    exact = True
    for size in (1, 16):
        moves = [word for i in range(size) for word in ("--at", f"20:move split/{i}=node-{i % 3 + 1}")]
        report, said = whole_run(
            "--seconds", "60", "--load", f"constant {RATE}", "--parallelism", "source=2,split=16,count=2",
            "--node-cpu", "0.66", "--migration", "restart-app", *moves,
        )  # fmt: skip
        if report is None:
            say(said)
            return {**found, f"{size}": "it failed"}, False
        exact = exact and is_exact(report)
        found[f"{size}"] = {"pause_s": report["longest_pause_s"]}
        say(f"restart-app M={size}: pause {report['longest_pause_s']:.2f} s")
    return found, exact
