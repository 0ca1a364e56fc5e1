"""Campaigns: views and clicks of advertisements, counted for each campaign. source -> enrich -> count.

It has another shape than WordCount: two inputs joined by a union, numbers instead of text, a broadcast join with a
static table, and one result for each input row. Judged by the count and checksum of every (event, campaign).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.naming import named
from barograph.model import Edge, Grouping, Operator, Topology
from barograph.model.checks import require
from barograph.workloads.keyed_counts import COUNT_SQL, KeyedCounts, counts_in_state, counts_of
from barograph.workloads.lines import LineShape
from barograph.workloads.parts import (
    DUE_AND_READ_SQL,
    LAST_TIMES_SQL,
    SOURCE_FIXED,
    read_as_batch,
    read_input,
    record_sql,
    with_busy_work,
    written_to,
)
from barograph.workloads.replay import Replay
from barograph.workloads.topic import Topic
from barograph.workloads.workload import NO_BUSY_WORK, Workload, split_by_input, unchanged

NAME = "campaigns"
EVENTS = ("view", "click")
CAMPAIGNS = 100
CHECKSUM_SQL = "bit_xor(xxhash64(partition, k)) as checksum"
SINK_SQL = ("event", "campaign", "occurrences", "checksum", *DUE_AND_READ_SQL)
DEFAULT_PARALLELISM: Mapping[str, int] = {"source": 2, "enrich": 2, "count": 3}


def topology(parallelism: Mapping[str, int]) -> Topology:
    least = len(EVENTS)
    require(parallelism["source"] >= least, f"{NAME} reads {least} inputs: source needs at least {least} instances")
    return Topology(
        NAME,
        (
            Operator("source", parallelism["source"], source=True, fixed_because=SOURCE_FIXED),
            Operator("enrich", parallelism["enrich"]),
            Operator("count", parallelism["count"], stateful=True),
        ),
        (Edge("source", "enrich", Grouping.SHUFFLE), Edge("enrich", "count", Grouping.FIELDS)),
    )


def inputs(load: Replay, parallelism: Mapping[str, int]) -> tuple[Replay, ...]:
    """One input of numbers, the advertisements, for each kind of event. The source's instances are shared out."""
    found = []
    for i in range(len(EVENTS)):
        partitions = (parallelism["source"] + len(EVENTS) - 1 - i) // len(EVENTS)
        lines = replace(load.lines, seed=load.lines.seed + i)
        found.append(replace(load, partitions=partitions, lines=lines, numbers=True))
    return tuple(found)


def one_result(_: LineShape) -> int:
    """Each event is counted once."""
    return 1


def query(
    spark: SparkSession,
    inputs: Sequence[Replay],
    parallelism: Mapping[str, int],
    busy_us: Mapping[str, int] = NO_BUSY_WORK,
    tamper: Callable[[DataFrame], DataFrame] = unchanged,
    name: Callable[[DataFrame, str], DataFrame] = named,
    out: Topic | None = None,
) -> DataStreamWriter:
    """``tamper`` may change the events that have their campaign."""
    spark.conf.set("spark.sql.shuffle.partitions", str(parallelism["count"]))
    views, clicks = (_events(read_input(spark, r), event) for r, event in zip(inputs, EVENTS, strict=True))
    dealt = with_busy_work(views.union(clicks).repartition(parallelism["enrich"]), busy_us.get("enrich", 0))
    ads = max(replay.lines.vocabulary for replay in inputs)
    enriched = name(tamper(dealt.join(broadcast(_campaign_of_ad(spark, ads)), "ad")), "enrich")
    counts = enriched.groupBy("event", "campaign").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL), expr(LAST_TIMES_SQL))
    counts = with_busy_work(counts, busy_us.get("count", 0))
    results = name(counts.selectExpr(*SINK_SQL, *record_sql(out, "concat(event, ' ', campaign)")), "count")
    return written_to(out, results.writeStream.queryName(NAME).outputMode("update"))


def _events(rows: DataFrame, event: str) -> DataFrame:
    return rows.withColumnRenamed("value", "ad").withColumn("event", expr(f"'{event}'"))


def _campaign_of_ad(spark: SparkSession, ads: int) -> DataFrame:
    """Advertisement a belongs to campaign a mod CAMPAIGNS. The table is small, so every instance gets all of it."""
    return spark.range(ads).selectExpr("id as ad", f"concat('campaign-', id % {CAMPAIGNS}) as campaign")


def due(spark: SparkSession, inputs: Sequence[Replay], read: Sequence[int]) -> KeyedCounts:
    """Without the join, so that a wrong one is noticed."""
    found: list[tuple[str, int, int]] = []
    rows = 0
    for replay, event, until_rows in zip(inputs, EVENTS, split_by_input(inputs, read), strict=True):
        events = read_as_batch(spark, replay, until_rows)
        key = expr(f"concat('{event} campaign-', value % {CAMPAIGNS})").alias("name")
        counts = events.groupBy(key).agg(expr(COUNT_SQL), expr(CHECKSUM_SQL)).collect()
        found += [(r["name"], r["occurrences"], r["checksum"]) for r in counts]
        rows += sum(replay.rows(until_rows))
    return counts_of(rows, found)


def counted(spark: SparkSession, checkpoint: str) -> KeyedCounts:
    return counts_in_state(spark, checkpoint, "concat(key.event, ' ', key.campaign)")


WORKLOAD = Workload(
    name=NAME,
    meaning="views and clicks of advertisements, two inputs, are counted for each campaign",
    default_parallelism=DEFAULT_PARALLELISM,
    default_load="constant 1000",
    busy=("enrich", "count"),
    topology=topology,
    inputs=inputs,
    results_per_row=one_result,
    query=query,
    due=due,
    counted=counted,
)
