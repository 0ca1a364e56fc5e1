"""The shapes of queries that are tested, each with what it must produce from the rows that it has committed.

A shape is judged by the state that its query leaves in the checkpoint, where it has one, and by the rows that reached
the sink. What is due is computed from the replayed rows and the checkpoint's offsets and watermarks, without the
query's own plan.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr
from tests.engines.spark.shapes.epochs import Epoch, Offsets, committed_epochs, epoch_of

from barograph.engines.spark.query.naming import named
from barograph.model import Load
from barograph.workloads.lines import LineShape
from barograph.workloads.parts import read_as_batch
from barograph.workloads.replay import FORMAT, Replay

RATE = 200
VALUES = 50
CHECK_SQL = "bit_xor((k * 1000003 + partition * 7919) % 2147483647) as checksum"
# Every tenth row belongs to a time 6 s before its neighbours', and the watermark stays 1 s behind the newest row.
BEGAN_MS, STEP_MS, LATE_MS, LATE_EVERY = 1_700_000_000_000, 10, 6000, 10
EVENT_SQL = f"timestamp_millis({BEGAN_MS} + k * {STEP_MS} - if(k % {LATE_EVERY} = 3, {LATE_MS}, 0)) as event"
WINDOW_MS = 2000
Key = tuple[object, ...]


@dataclass(frozen=True)
class Row:
    """A replayed row. input: the number of its source; epoch: that has committed it."""

    input: int
    partition: int
    k: int
    value: int
    epoch: Epoch

    @property
    def check(self) -> int:
        return (self.k * 1000003 + self.partition * 7919) % 2147483647

    @property
    def event_ms(self) -> int:
        return BEGAN_MS + self.k * STEP_MS - (LATE_MS if self.k % LATE_EVERY == 3 else 0)

    @property
    def window_end_ms(self) -> int:
        return (self.event_ms // WINDOW_MS + 1) * WINDOW_MS


@dataclass(frozen=True)
class Result:
    """What a query left: the rows at its sink as text, its state by operator, and the epochs it has committed.

    died: the epochs in which a run of it died; their rows, and those of no earlier epoch, may have come again."""

    rows: Sequence[Row]
    noted: Counter[str]
    state: Mapping[str, DataFrame]
    epochs: Sequence[Epoch]
    died: Sequence[int]


@dataclass
class Judgement:
    """faults: what is wrong; empty where the result is exact. dropped: rows that Spark must have dropped as late.
    counted_late: rows as late as those that it counted. repeats: rows that reached the sink again."""

    due: int = 0
    dropped: int = 0
    counted_late: int = 0
    repeats: int = 0
    faults: list[str] = field(default_factory=list)

    def compare(self, what: str, due: Mapping[Key, object], found: Mapping[Key, object]) -> None:
        wrong = [k for k in {*due, *found} if due.get(k) != found.get(k)]
        self.faults += [f"{what} {k}: {found.get(k)} instead of {due.get(k)}" for k in sorted(wrong, key=str)[:5]]
        self.faults += [f"{what}: {len(wrong)} of {len(due)} are wrong"] if wrong else []

    def contain(self, what: str, due: Iterable[str], found: Counter[str]) -> None:
        missing = [text for text in due if text not in found]
        self.faults += [f"{what}: {len(missing)} are missing, the first is {missing[0]}"] if missing else []


@dataclass(frozen=True)
class Shape:
    """build: the query up to its sink, given its inputs and a static table's folder. live: operators that are scaled
    while it runs. kept: those with state, which are scaled together. fixed: an operator that cannot be scaled, and why.
    states: its operators in the checkpoint."""

    name: str
    build: Callable[[Sequence[DataFrame], DataFrame], DataFrame]
    judge: Callable[[Result], Judgement]
    operators: tuple[str, ...]
    live: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    fixed: tuple[str, str] | None = None
    inputs: int = 1
    late: bool = False

    def replays(self) -> tuple[Replay, ...]:
        schedule = Load.parse(f"constant {RATE}").schedule(1.0)
        return tuple(
            Replay(schedule, 2, LineShape(seed=seed, vocabulary=VALUES), numbers=True) for seed in range(self.inputs)
        )

    def read(self, spark: SparkSession) -> list[DataFrame]:
        return [spark.readStream.format(FORMAT).options(**r.options()).load() for r in self.replays()]

    def frame(self, spark: SparkSession, inputs: Sequence[DataFrame], table: Path, notes: Path) -> DataFrame:
        note = f"reflect('org.apache.spark.barograph.testing.RowLog', 'note', '{notes}', note) as note"
        built = self.build(inputs, spark.read.parquet(str(table)))
        return named(built.selectExpr(note), self.operators[-1])

    def result(
        self, spark: SparkSession, checkpoint: Path, notes: Path, died: Sequence[int], offsets: Offsets
    ) -> Result:
        replays = self.replays()
        epochs = committed_epochs(checkpoint, sum(r.partitions for r in replays), offsets)
        rows, at = [], 0
        for number, replay in enumerate(replays):
            read = epochs[-1].end[at : at + replay.partitions]
            for r in read_as_batch(spark, replay, read).collect():
                epoch = epoch_of(epochs, at + r["partition"], r["k"])
                assert epoch is not None
                rows.append(Row(number, r["partition"], r["k"], r["value"], epoch))
            at += replay.partitions
        noted = Counter(line for file in notes.glob("*") for line in file.read_text().splitlines())
        return Result(rows, noted, states(spark, checkpoint) if self.kept or self.fixed else {}, epochs, died)


def states(spark: SparkSession, checkpoint: Path) -> dict[str, DataFrame]:
    """The state of each stateful operator, by its name in the checkpoint."""
    known = spark.read.format("state-metadata").load(str(checkpoint)).select("operatorId", "operatorName").distinct()
    return {
        r["operatorName"]: spark.read.format("statestore").option("operatorId", r["operatorId"]).load(str(checkpoint))
        for r in known.collect()
    }


def aggregate(result: Result) -> DataFrame:
    return next(frame for name, frame in result.state.items() if "dedupe" not in name)


# --- without state ---


def dealt(rows: DataFrame) -> DataFrame:
    return named(rows.repartition(2).where("k >= 0"), "deal")


def stateless(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    return inputs[0].repartition(2).where("value % 2 = 0").selectExpr("concat_ws(' ', partition, k, value) as note")


def judge_stateless(result: Result) -> Judgement:
    due = {f"{r.partition} {r.k} {r.value}": r for r in result.rows if r.value % 2 == 0}
    return passed_on(due, result)


def passed_on(due: Mapping[str, Row], result: Result) -> Judgement:
    """Every row that is due reached the sink, once, or again for each death in its epoch or before it was committed.
    Rows that were read and not committed may have, too."""
    found = Judgement(len(due), repeats=sum(result.noted[text] - 1 for text in due if result.noted[text] > 1))
    found.contain("rows", due, result.noted)
    for text, row in due.items():
        if result.noted[text] > 1 + sum(epoch <= row.epoch.number for epoch in result.died):
            found.faults.append(f"{text} of epoch {row.epoch.number} came {result.noted[text]} times")
    return found


def union(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    first, second = (rows.selectExpr(f"{n} as input", "partition", "k", "value") for n, rows in enumerate(inputs))
    return first.union(second).repartition(2).selectExpr("concat_ws(' ', input, partition, k, value) as note")


def judge_union(result: Result) -> Judgement:
    return passed_on({f"{r.input} {r.partition} {r.k} {r.value}": r for r in result.rows}, result)


def joined(inputs: Sequence[DataFrame], table: DataFrame) -> DataFrame:
    found = inputs[0].repartition(2).join(broadcast(table), "value")
    return found.selectExpr("concat_ws(' ', partition, k, name) as note")


def judge_joined(result: Result) -> Judgement:
    """The table has a name for every third value."""
    due = {f"{r.partition} {r.k} name-{r.value}": r for r in result.rows if r.value % 3 == 0}
    found = passed_on(due, result)
    found.faults += [f"{line} has no partner" for line in result.noted if int(line.split("-")[1]) % 3 != 0][:5]
    return found


# --- with state ---


def plain(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    counts = dealt(inputs[0]).groupBy("value").agg(expr("count(1) as n"), expr(CHECK_SQL))
    return counts.selectExpr("concat_ws(' ', value, n, checksum) as note")


def global_count(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    counts = dealt(inputs[0]).groupBy().agg(expr("count(1) as n"), expr(CHECK_SQL))
    return counts.selectExpr("concat_ws(' ', n, checksum) as note")


def judge_plain(result: Result) -> Judgement:
    return judge_counts(result, counts_by(result.rows, lambda r: (r.value,)), "key.value")


def judge_global(result: Result) -> Judgement:
    return judge_counts(result, counts_by(result.rows, lambda _: ()))


def counts_by(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, Key]:
    """(rows, checksum) of each key."""
    found: dict[Key, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        n, checksum = found[key(row)]
        found[key(row)] = n + 1, checksum ^ row.check
    return dict(found)


def judge_counts(result: Result, due: Mapping[Key, Key], *keys: str) -> Judgement:
    found = Judgement(len(result.rows))
    found.compare("state", due, state_by(aggregate(result), *keys))
    found.contain("last counts", (" ".join(map(str, (*key, *value))) for key, value in due.items()), result.noted)
    return found


def state_by(state: DataFrame, *keys: str) -> dict[Key, Key]:
    rows = state.selectExpr(*keys, "value.count", "value.bit_xor").collect()
    return {tuple(r[: len(keys)]): (r["count"], r["bit_xor"]) for r in rows}


def windowed(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    rows = dealt(inputs[0]).selectExpr("partition", "k", "value % 5 as kind", EVENT_SQL)
    return counted_by_window(rows.withWatermark("event", "1 second"))


def counted_by_window(rows: DataFrame) -> DataFrame:
    window = expr(f"window(event, '{WINDOW_MS} milliseconds')")
    counts = rows.groupBy(window.alias("window"), "kind").agg(expr("count(1) as n"), expr(CHECK_SQL))
    return counts.selectExpr("concat_ws(' ', unix_millis(window.end), kind, n, checksum) as note")


def judge_windowed(result: Result) -> Judgement:
    return judge_windows(result, lambda r: r.window_end_ms <= r.epoch.late_ms)


def judge_windows(result: Result, is_dropped: Callable[[Row], bool]) -> Judgement:
    """Windows that the watermark has passed are no longer in the state; their last counts were put out."""
    kept = [r for r in result.rows if not is_dropped(r)]
    due = counts_by(kept, lambda r: (r.window_end_ms, r.value % 5))
    found = Judgement(len(result.rows), dropped=len(result.rows) - len(kept))
    found.counted_late = sum(r.k % LATE_EVERY == 3 for r in kept)
    state = state_by(aggregate(result), "unix_millis(key.window.end)", "key.kind")
    gone = {key for key in due if key not in state and int(str(key[0])) <= result.epochs[-1].kept_ms}
    found.compare("state", {key: value for key, value in due.items() if key not in gone}, state)
    found.contain("last counts", (" ".join(map(str, (*key, *value))) for key, value in due.items()), result.noted)
    if not gone:
        found.faults.append("no window was closed: nothing of that was tested")
    return found


def deduplicated(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    return (
        dealt(inputs[0]).dropDuplicates(["value", "partition"]).selectExpr("concat_ws(' ', value, partition) as note")
    )


def put_out_once(due: Iterable[str], result: Result) -> Judgement:
    """What does not come again unless a run died before it was committed."""
    found = Judgement(len(result.rows))
    found.contain("rows", due, result.noted)
    found.faults += [f"{text} came {n} times" for text, n in result.noted.items() if n > 1 + len(result.died)][:5]
    return found


def judge_deduplicated(result: Result) -> Judgement:
    due: dict[Key, object] = {(r.value, r.partition): True for r in result.rows}
    found = put_out_once((" ".join(map(str, key)) for key in due), result)
    keys = result.state["dedupe"].selectExpr("key.value", "key.partition").collect()
    found.compare("state", due, {tuple(r): True for r in keys})
    return found


def doubled(rows: DataFrame) -> DataFrame:
    """Every row twice, which the deduplication behind it must undo."""
    return named(rows.repartition(2).selectExpr("*", "explode(array(1, 2)) as time"), "deal")


def distinct_counts(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    once = named(doubled(inputs[0]).dropDuplicates(["partition", "k"]), "once")
    counts = once.groupBy("value").agg(expr("count(1) as n"), expr(CHECK_SQL))
    return counts.selectExpr("concat_ws(' ', value, n, checksum) as note")


def judge_distinct_counts(result: Result) -> Judgement:
    found = judge_plain(result)
    keys = result.state["dedupe"].selectExpr("key.partition", "key.k").collect()
    found.compare("keys", {(r.partition, r.k): True for r in result.rows}, {tuple(r): True for r in keys})
    return found


def in_one_stage(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    """Both have the same key, so that there is no shuffle between them."""
    once = dealt(inputs[0]).dropDuplicates(["value", "partition"])
    counts = once.groupBy("value", "partition").agg(expr("count(1) as n"))
    return counts.selectExpr("concat_ws(' ', value, partition, n) as note")


def judge_in_one_stage(result: Result) -> Judgement:
    due: dict[Key, object] = {(r.value, r.partition): 1 for r in result.rows}
    found = put_out_once((f"{value} {partition} 1" for value, partition in due), result)
    state = aggregate(result).selectExpr("key.value", "key.partition", "value.count").collect()
    found.compare("state", due, {tuple(r[:2]): r["count"] for r in state})
    return found


def distinct_windows(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    rows = doubled(inputs[0]).selectExpr("partition", "k", "value % 5 as kind", EVENT_SQL)
    once = rows.withWatermark("event", "1 second").dropDuplicates(["partition", "k", "event"])
    return counted_by_window(named(once, "once"))


def judge_distinct_windows(result: Result) -> Judgement:
    """The deduplication sees a row's own time, so it drops rows that the windows behind it would still count."""
    found = judge_windows(result, lambda r: r.event_ms <= r.epoch.late_ms)
    found.dropped *= 2  # each row is there twice
    return found


GLOBAL = "a global grouping has exactly one instance"
SHAPES = (
    Shape("stateless", stateless, judge_stateless, ("source", "keep"), live=("keep",)),
    Shape("union", union, judge_union, ("source", "tag"), live=("tag",), inputs=2),
    Shape("broadcast join", joined, judge_joined, ("source", "join"), live=("join",)),
    Shape("aggregation", plain, judge_plain, ("source", "deal", "count"), live=("deal",), kept=("count",)),
    Shape(
        "global aggregation", global_count, judge_global,
        ("source", "deal", "count"), ("deal",), fixed=("count", GLOBAL),
    ),
    Shape("windows", windowed, judge_windowed, ("source", "deal", "count"), ("deal",), ("count",), late=True),
    Shape("deduplication", deduplicated, judge_deduplicated, ("source", "deal", "once"), ("deal",), ("once",)),
    Shape(
        "deduplication, then counts", distinct_counts, judge_distinct_counts,
        ("source", "deal", "once", "count"), ("deal",), ("once", "count"),
    ),
    Shape("both in one stage", in_one_stage, judge_in_one_stage, ("source", "deal", "both"), ("deal",), ("both",)),
    Shape(
        "deduplication, then windows", distinct_windows, judge_distinct_windows,
        ("source", "deal", "once", "count"), ("deal",), ("once", "count"), late=True,
    ),
)  # fmt: skip
