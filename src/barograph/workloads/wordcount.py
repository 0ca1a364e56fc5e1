"""WordCount, the papers' common example: source -> split -> count. Judged by the count and checksum of every word."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.naming import named
from barograph.model import Edge, Grouping, Operator, Topology
from barograph.workloads.keyed_counts import COUNT_SQL, KeyedCounts, counts_in_state
from barograph.workloads.lines import LineShape
from barograph.workloads.parts import (
    DUE_AND_READ_SQL,
    LAST_TIMES_SQL,
    SOURCE_FIXED,
    read_input,
    record_sql,
    with_busy_work,
    written_to,
)
from barograph.workloads.replay import Replay
from barograph.workloads.topic import Topic
from barograph.workloads.truth import CHECKSUM_SQL, WORDS_SQL, truth_by_spark
from barograph.workloads.workload import NO_BUSY_WORK, Workload, unchanged

NAME = "wordcount"
SINK_SQL = ("word", "occurrences", "checksum", *DUE_AND_READ_SQL)
DEFAULT_PARALLELISM: Mapping[str, int] = {"source": 2, "split": 2, "count": 3}


def topology(parallelism: Mapping[str, int]) -> Topology:
    return Topology(
        NAME,
        (
            Operator("source", parallelism["source"], source=True, fixed_because=SOURCE_FIXED),
            Operator("split", parallelism["split"]),
            Operator("count", parallelism["count"], stateful=True),
        ),
        (Edge("source", "split", Grouping.SHUFFLE), Edge("split", "count", Grouping.FIELDS)),
    )


def inputs(load: Replay, parallelism: Mapping[str, int]) -> tuple[Replay, ...]:
    """One input of lines of words."""
    return (replace(load, partitions=parallelism["source"]),)


def words_of(lines: LineShape) -> int:
    return lines.words_per_line


def query(
    spark: SparkSession,
    inputs: Sequence[Replay],
    parallelism: Mapping[str, int],
    busy_us: Mapping[str, int] = NO_BUSY_WORK,
    tamper: Callable[[DataFrame], DataFrame] = unchanged,
    name: Callable[[DataFrame, str], DataFrame] = named,
    out: Topic | None = None,
) -> DataStreamWriter:
    """Busy work of split is for each line, of count for each word; ``tamper`` may change the words."""
    spark.conf.set("spark.sql.shuffle.partitions", str(parallelism["count"]))
    (lines,) = (read_input(spark, replay) for replay in inputs)
    dealt = with_busy_work(lines.repartition(parallelism["split"]), busy_us.get("split", 0))
    words = name(tamper(dealt.selectExpr(*WORDS_SQL, "times")), "split")
    counts = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL), expr(LAST_TIMES_SQL))
    counts = with_busy_work(counts, busy_us.get("count", 0))
    results = name(counts.selectExpr(*SINK_SQL, *record_sql(out, "word")), "count")
    return written_to(out, results.writeStream.queryName(NAME).outputMode("update"))


def due(spark: SparkSession, inputs: Sequence[Replay], read: Sequence[int]) -> KeyedCounts:
    (lines,) = inputs
    return truth_by_spark(spark, lines, read)


def counted(spark: SparkSession, checkpoint: str) -> KeyedCounts:
    return counts_in_state(spark, checkpoint, "key.word")


WORKLOAD = Workload(
    name=NAME,
    meaning="lines are split into words and each word is counted",
    default_parallelism=DEFAULT_PARALLELISM,
    default_load="constant 1000",
    busy=("split", "count"),
    topology=topology,
    inputs=inputs,
    results_per_row=words_of,
    query=query,
    due=due,
    counted=counted,
)
