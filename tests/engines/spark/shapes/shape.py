"""What a shape of query is: how it is built, and what it must produce from the rows that it has committed.

A shape is judged by the state that its query leaves in the checkpoint, where it has one, and by the rows that reached
the sink. What is due is computed from the replayed rows and the checkpoint's offsets and watermarks, without the
query's own plan.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
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
        return Result(rows, noted, states(spark, checkpoint) if (checkpoint / "state").is_dir() else {}, epochs, died)


def states(spark: SparkSession, checkpoint: Path) -> dict[str, DataFrame]:
    """The state of each stateful operator, by its name in the checkpoint."""
    known = spark.read.format("state-metadata").load(str(checkpoint)).select("operatorId", "operatorName").distinct()
    return {
        r["operatorName"]: spark.read.format("statestore").option("operatorId", r["operatorId"]).load(str(checkpoint))
        for r in known.collect()
    }
