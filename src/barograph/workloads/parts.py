"""Parts that queries of workloads have in common: reading an input, carrying a row's times, busy work."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SOURCE_FIXED = "a source has as many instances as its input has partitions"
# A row's own times, through the aggregate to the sink. Spark's real-time aggregate emits a row for every row it takes,
# at once, from the state merged with that row (StatefulStreamlineAggregateExec, update mode), so last() of an emitted
# row is the time of the very row that caused it. It must not be max(): that credits a late row with a newer row's time.
# Both times are one number, so that the state grows by one field: due_ms, and 21 bits for read_ms - due_ms, which are
# enough for 35 minutes.
TIMES_SQL = "shiftleft(due_ms, 21) | least(greatest(read_ms - due_ms, 0L), 2097151L) as times"
LAST_TIMES_SQL = "last(times) as times"
DUE_AND_READ_SQL = (
    "shiftright(times, 21) as barograph_due_ms",
    "shiftright(times, 21) + (times & 2097151L) as barograph_read_ms",
)
"""The columns by which the plug-in and TimedSink measure latency; for the ``selectExpr`` in front of the sink."""


def read_input(spark: "SparkSession", replay: Replay) -> "DataFrame":
    """A stream of the input's rows with the column ``times``."""
    if replay.topic is not None:
        return replay.topic.read(spark, replay.numbers).selectExpr("*", TIMES_SQL)
    timed = replace(replay, read_time=True)
    return spark.readStream.format(FORMAT).options(**timed.options()).load().selectExpr("*", TIMES_SQL)


def read_as_batch(spark: "SparkSession", replay: Replay, until_rows: Sequence[int] | None = None) -> "DataFrame":
    """The same rows as a batch, for computing the exact result. until_rows: of each partition, at most."""
    counts = replay.rows(until_rows)
    options = replay.options() | {"until_rows": ",".join(str(n) for n in counts)}
    return spark.read.format(FORMAT).options(**options).load()


def record_sql(out: Topic | None, key_sql: str) -> tuple[str, ...]:
    """The columns of a record of the topic; none where the result goes nowhere. The row has its count so far."""
    return () if out is None else (f"{key_sql} as key", "cast(occurrences as string) as value")


def written_to(out: Topic | None, writer: "DataStreamWriter") -> "DataStreamWriter":
    if out is None:
        return writer.format("noop")
    return writer.format("kafka").options(**out.options()).option("topic", out.name)


def with_busy_work(frame: "DataFrame", micros: int) -> "DataFrame":
    """Every row costs this much additional CPU. It is a filter that passes every row and that Spark does not move."""
    work = f"reflect('org.apache.spark.barograph.source.BusyWork', 'spin', {micros}) is not null"
    return frame.where(work) if micros > 0 else frame
