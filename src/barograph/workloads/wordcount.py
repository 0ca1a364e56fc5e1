"""WordCount, the papers' own example: source -> split -> count, with counts that can be checked to the last row."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.model import Edge, Grouping, Operator, Topology
from barograph.naming import named
from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.truth import CHECKSUM_SQL, COUNT_SQL, WORDS_SQL, WordTruth, truth_of_rows

NAME = "wordcount"
SOURCE_FIXED = "a source has as many instances as its input has partitions"
STATE_FIXED = "its state is split over its instances: changing their number takes a repartition of the state"
DEFAULT_PARALLELISM: Mapping[str, int] = {"source": 2, "split": 2, "count": 3}


def topology(parallelism: Mapping[str, int]) -> Topology:
    """What the planner will find, told beforehand, so that a first placement can be made before the query starts."""
    return Topology(
        NAME,
        (
            Operator("source", parallelism["source"], source=True, fixed_because=SOURCE_FIXED),
            Operator("split", parallelism["split"]),
            Operator("count", parallelism["count"], stateful=True, fixed_because=STATE_FIXED),
        ),
        (Edge("source", "split", Grouping.SHUFFLE), Edge("split", "count", Grouping.FIELDS)),
    )


def build(
    spark: SparkSession,
    replay: Replay,
    parallelism: Mapping[str, int],
    tamper: Callable[[DataFrame], DataFrame] = lambda words: words,
) -> DataStreamWriter:
    """The query, without checkpoint and trigger. ``tamper`` may spoil the words, to see that the verdict notices."""
    spark.conf.set("spark.sql.shuffle.partitions", str(parallelism["count"]))
    lines = spark.readStream.format(FORMAT).options(**replay.options()).load()
    words = named(tamper(lines.repartition(parallelism["split"]).selectExpr(*WORDS_SQL)), "split")
    counts = named(words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL)), "count")
    return counts.writeStream.queryName(NAME).outputMode("update").format("noop")


def counted(spark: SparkSession, checkpoint: str) -> WordTruth:
    """What the query has counted, read back from the state in its checkpoint."""
    state = spark.read.format("statestore").load(checkpoint)
    rows = state.selectExpr("key.word as word", "value.count as n", "value.bit_xor as checksum").collect()
    return truth_of_rows(0, ((r["word"], r["n"], r["checksum"]) for r in rows))
