"""WordCount, the papers' own example: source -> split -> count, with counts that can be checked to the last row."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.model import Edge, Grouping, Operator, Topology
from barograph.naming import named
from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.truth import CHECKSUM_SQL, COUNT_SQL, WORDS_SQL, WordTruth, truth_of_rows

NAME = "wordcount"
SOURCE_FIXED = "a source has as many instances as its input has partitions"
# A word's own times, through the aggregate to the sink. Spark's real-time aggregate emits a row for every row it takes,
# at once, from the state merged with that row (StatefulStreamlineAggregateExec, update mode), so last() of an emitted
# row is the time of the very row that caused it. It must not be max(): that credits a late row with a newer row's time.
# Both times are one number, so that the state grows by one field: due_ms, and 21 bits for read_ms - due_ms, which are
# enough for 35 minutes.
TIMES_SQL = "shiftleft(due_ms, 21) | least(greatest(read_ms - due_ms, 0L), 2097151L) as times"
LAST_TIMES_SQL = "last(times) as times"
SINK_SQL = (
    "word", "occurrences", "checksum", "shiftright(times, 21) as barograph_due_ms",
    "shiftright(times, 21) + (times & 2097151L) as barograph_read_ms",
)  # fmt: skip
NO_TOIL: Mapping[str, int] = {}
TOILERS = ("split", "count")
"""Operators whose rows can be made to cost more."""
DEFAULT_PARALLELISM: Mapping[str, int] = {"source": 2, "split": 2, "count": 3}


def topology(parallelism: Mapping[str, int]) -> Topology:
    """What the planner will find, told beforehand, so that a first placement can be made before the query starts."""
    return Topology(
        NAME,
        (
            Operator("source", parallelism["source"], source=True, fixed_because=SOURCE_FIXED),
            Operator("split", parallelism["split"]),
            Operator("count", parallelism["count"], stateful=True),
        ),
        (Edge("source", "split", Grouping.SHUFFLE), Edge("split", "count", Grouping.FIELDS)),
    )


def build(
    spark: SparkSession,
    replay: Replay,
    parallelism: Mapping[str, int],
    tamper: Callable[[DataFrame], DataFrame] = lambda words: words,
    toil_us: Mapping[str, int] = NO_TOIL,
) -> DataStreamWriter:
    """The query, without checkpoint and trigger. ``tamper`` may spoil the words, to see that the verdict notices.

    toil_us: of an operator, CPU microseconds that each row costs it besides: of split a line, of count a word.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(parallelism["count"]))
    timed = replace(replay, read_time=True)
    lines = spark.readStream.format(FORMAT).options(**timed.options()).load().selectExpr("*", TIMES_SQL)
    dealt = _toiling(lines.repartition(parallelism["split"]), toil_us.get("split", 0))
    words = named(tamper(dealt.selectExpr(*WORDS_SQL, "times")), "split")
    counts = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL), expr(LAST_TIMES_SQL))
    counts = _toiling(counts, toil_us.get("count", 0))
    return named(counts.selectExpr(*SINK_SQL), "count").writeStream.queryName(NAME).outputMode("update").format("noop")


def _toiling(frame: DataFrame, micros: int) -> DataFrame:
    """Every row costs so much CPU here. A filter that lets all through, and that Spark does not move."""
    work = f"reflect('org.apache.spark.barograph.Toil', 'spin', {micros}) is not null"
    return frame.where(work) if micros > 0 else frame


def counted(spark: SparkSession, checkpoint: str) -> WordTruth:
    """What the query has counted, read back from the state in its checkpoint."""
    state = spark.read.format("statestore").load(checkpoint)
    rows = state.selectExpr("key.word as word", "value.count as n", "value.bit_xor as checksum").collect()
    return truth_of_rows(0, ((r["word"], r["n"], r["checksum"]) for r in rows))
