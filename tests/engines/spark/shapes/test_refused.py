"""Shapes that Spark refuses in real-time mode: at once, with Spark's own reason."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr, session_window, udf, window
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.engines.spark.shapes.shape import EVENT_SQL
from tests.polling import until

from barograph.engines.spark.session import real_time
from barograph.model import Load
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import FORMAT, Replay

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    return shared_stage


def rows(spark: SparkSession, seed: int = 1) -> DataFrame:
    replay = Replay(Load.parse("constant 10").schedule(1.0), 1, LineShape(seed=seed), numbers=True)
    found = spark.readStream.format(FORMAT).options(**replay.options()).load()
    return found.selectExpr("*", EVENT_SQL).withWatermark("event", "1 second")


def count(frame: DataFrame, *keys: Column | str) -> DataFrame:
    return frame.groupBy(*keys).agg(expr("count(1) as n"))


def static(spark: SparkSession) -> DataFrame:
    return spark.range(50).selectExpr("id as value", "id as name")


def plus_one(rows: DataFrame) -> DataFrame:
    """In Python, row by row. The function is made here, because making it takes a session."""
    return rows.select(udf(lambda value: value + 1, "long")("value"))


@dataclass(frozen=True)
class Refused:
    """why: part of what Spark says. mode: the output mode. each_batch: whether its sink is foreachBatch."""

    shape: str
    build: Callable[[SparkSession], DataFrame]
    why: str
    mode: str = "update"
    each_batch: bool = False


REFUSED = (
    Refused("output mode append", rows, "OUTPUT_MODE_NOT_SUPPORTED", mode="append"),
    Refused("output mode complete", lambda s: count(rows(s), "value"), "OUTPUT_MODE_NOT_SUPPORTED", mode="complete"),
    Refused("join of two streams", lambda s: rows(s).join(rows(s, 2), "value"), "StreamingSymmetricHashJoinExec"),
    Refused("join without broadcast", lambda s: rows(s).join(static(s).hint("merge"), "value"), "SortMergeJoinExec"),
    Refused("session windows", lambda s: count(rows(s), session_window("event", "2 seconds")), "session window"),
    Refused(
        "deduplication within the watermark",
        lambda s: rows(s).dropDuplicatesWithinWatermark(["value"]),
        "StreamingDeduplicateWithinWatermarkExec",
    ),
    Refused(
        "an aggregation of an aggregation",
        lambda s: count(count(rows(s), window("event", "1 second"), "value"), "value"),
        "late rows",
    ),
    Refused(
        "a stateful operator before a union",
        lambda s: rows(s).dropDuplicates(["value"]).union(rows(s, 2)),
        "STATEFUL_OPERATORS_BEFORE_UNION_NOT_SUPPORTED",
    ),
    Refused("a union of a source with itself", lambda s: (r := rows(s)).union(r), "IDENTICAL_SOURCES_IN_UNION"),
    Refused("a limit", lambda s: rows(s).limit(5), "Limits are not supported"),
    Refused("a sort", lambda s: rows(s).orderBy("value"), "Sorting is not supported"),
    Refused("partitions by range", lambda s: rows(s).repartitionByRange(2, col("value")), "ShuffleExchangeExec"),
    Refused("distinct values", lambda s: rows(s).groupBy().agg(expr("count(distinct k)")), "Distinct aggregations"),
    Refused("a Python function", lambda s: plus_one(rows(s)), "BatchEvalPythonExec"),
    Refused("the rate source", lambda s: s.readStream.format("rate").load(), "INPUT_STREAM_NOT_SUPPORTED"),
    Refused("foreachBatch", rows, "SINK_NOT_SUPPORTED", each_batch=True),
)  # fmt: skip


@pytest.mark.parametrize("refused", [pytest.param(r, id=r.shape) for r in REFUSED])
def test_spark_refuses_it_and_says_why(stage: LocalCluster, refused: Refused) -> None:
    with tempfile.TemporaryDirectory(prefix="barograph-refused-", ignore_cleanup_errors=True) as folder:

        def build() -> DataStreamWriter:
            stage.spark.conf.set("spark.sql.shuffle.partitions", "2")
            writer = refused.build(stage.spark).writeStream.queryName("refused").outputMode(refused.mode)
            writer = writer.foreachBatch(lambda _f, _e: None) if refused.each_batch else writer.format("noop")
            return real_time(writer.option("checkpointLocation", folder), 60.0)

        try:
            query = stage.supervisor.start(build)
        except Exception as error:  # noqa: BLE001  # of Spark, of several kinds
            said = str(error)
        else:
            try:
                until(lambda: not query.isActive, 120.0)
                assert query.is_bug
                assert query.restarts == (), "what is refused is not tried again"
                said = query.gave_up_because
                assert said.startswith("a bug in the query: Spark refuses the query: ")
                assert "bypass" not in said, "what Spark advises does not help here"
            finally:
                query.stop()
        assert refused.why in said
