"""The replay source in a real Spark: the same rows by batch, micro-batch and real-time reads, and after a restart."""

import json
import random
import runpy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.model import Load, Schedule, Segment
from barograph.model.loads.schedule import encode
from barograph.testing.local_cluster import with_testing_jar
from barograph.workloads.keyed_counts import COUNT_SQL, counts_of
from barograph.workloads.lines import LineShape, word
from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.truth import CHECKSUM_SQL, WORDS_SQL, truth_by_numpy, truth_by_spark

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "tests" / "vectors" / "replay.json").read_text())
REPLAY = Replay(Load.parse("ramp 0s=200 2s=2000").schedule(60), partitions=3, lines=LineShape(11, 6, 200), close_s=4)
NOW_MS = 'cast(reflect("java.lang.System", "currentTimeMillis") as bigint)'


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    runpy.run_path(str(ROOT / "jvm" / "compile.py"))["compile_shipped"]()
    settings = {
        # The class path of the driver's JVM is that of the first session of the process, and other tests need all jars.
        "spark.driver.extraClassPath": with_testing_jar()["spark.driver.extraClassPath"],
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("replay") / "warehouse"),
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # the memory sink is not on the list
        "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    builder = SparkSession.builder.master("local[8]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    for query in session.streams.active:
        query.stop()
    session.stop()


def jvm(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.barograph.source  # type: ignore[union-attr]


def batch(spark: SparkSession, replay: Replay, **options: str) -> DataFrame:
    return spark.read.format(FORMAT).options(**replay.options()).options(**options).load()


def stream(spark: SparkSession, replay: Replay) -> DataFrame:
    return spark.readStream.format(FORMAT).options(**replay.options()).load()


def expected_rows(replay: Replay, start_ms: int) -> set[tuple[int, int, int, str]]:
    rows = set()
    for p, count in enumerate(replay.rows()):
        for k, ranks in enumerate(replay.lines.ranks(p, np.arange(count)).tolist()):
            due_ms = start_ms + replay.schedule.due_ms(p, k, replay.partitions)
            rows.add((p, k, due_ms, " ".join(word(rank) for rank in ranks)))
    return rows


def wait_for(query: StreamingQuery, condition: Callable[[], bool], deadline_s: float = 60) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        if (error := query.exception()) is not None:
            raise error
        assert time.monotonic() < end, f"still not so after {deadline_s} s: {query.lastProgress}"
        time.sleep(0.05)


def status(spark: SparkSession, checkpoint: Path) -> dict[str, Any]:
    running: dict[str, dict[str, Any]] = json.loads(jvm(spark).ReplayStreams.status())
    return next((s for at, s in running.items() if f"{checkpoint}/" in at), {})


def drained(spark: SparkSession, checkpoint: Path) -> bool:
    return bool(status(spark, checkpoint).get("drained"))


def drained_progress(query: StreamingQuery) -> bool:
    progress = query.lastProgress
    return progress is not None and progress.sources[0].metrics.get("drained") == "true"


def real_time(writer: DataStreamWriter, epoch: str) -> DataStreamWriter:
    started: DataStreamWriter = cast(Any, writer).trigger(realTime=epoch)  # pyspark's types do not know it yet
    return started


def start_noted(checkpoint: Path) -> int:
    return int(json.loads((checkpoint / "sources" / "0" / "load.json").read_text())["start_ms"])


def test_due_times_agree_with_python(spark: SparkSession) -> None:
    load = jvm(spark).Load
    for v in VECTORS["due"]:
        found = load.decode(v["segments"]).dueMs(v["partition"], v["k"], v["partitions"])
        assert found == v["due_ms"], v
    rng = random.Random(20)
    for _ in range(40):
        ends_s = sorted(rng.uniform(0.01, 300) for _ in range(4))
        rates = [rng.choice([0.0, rng.uniform(0.1, 1e5)]) for _ in range(5)]
        segments = zip([0.0, *ends_s], ends_s, rates, rates[1:], strict=False)
        schedule = Schedule(tuple(Segment(*s) for s in segments))
        same = load.decode(encode(schedule.segments))
        for _ in range(20):
            n, k, t_ms = rng.randint(1, 8), rng.randrange(10**6), rng.randrange(400_000)
            p = rng.randrange(n)
            assert same.dueMs(p, k, n) == schedule.due_ms(p, k, n), (schedule, p, k, n)
            assert same.rowsDue(p, n, t_ms) == schedule.rows_due(p, n, t_ms), (schedule, p, n, t_ms)


def test_lines_agree_with_python(spark: SparkSession) -> None:
    for v in VECTORS["lines"]:
        shape = jvm(spark).LineShape(v["seed"], v["words_per_line"], v["vocabulary"], v["skew"])
        assert jvm(spark).Lines(shape).line(v["partition"], v["k"]) == v["line"], v


def test_a_batch_reads_the_whole_load(spark: SparkSession) -> None:
    rows = batch(spark, REPLAY, start_ms="5000").collect()
    assert len(rows) == sum(REPLAY.rows())
    assert {tuple(r) for r in rows} == expected_rows(REPLAY, 5000)


def test_a_batch_reads_up_to_given_rows(spark: SparkSession) -> None:
    counts = batch(spark, REPLAY, until_rows="5,0,7").groupBy("partition").count().collect()
    assert {(r["partition"], r["count"]) for r in counts} == {(0, 5), (2, 7)}


def test_numbers(spark: SparkSession) -> None:
    replay = replace(REPLAY, numbers=True)
    frame = batch(spark, replay, until_rows="40,40,40")
    assert dict(frame.dtypes)["value"] == "bigint"
    assert {(r["partition"], r["k"], r["value"]) for r in frame.collect()} == {
        (p, k, replay.lines.number(p, k)) for p in range(3) for k in range(40)
    }


def test_spark_and_numpy_compute_the_same_result(spark: SparkSession) -> None:
    assert truth_by_spark(spark, REPLAY) == truth_by_numpy(REPLAY)
    assert truth_by_spark(spark, REPLAY, [10, 0, 99]) == truth_by_numpy(REPLAY, [10, 0, 99])


WRONG = {
    "no such option": ({"word_per_line": "3"}, "has no option word_per_line"),
    "not a number": ({"partitions": "many"}, "partitions is not a number: 'many'"),
    "no partitions": ({"partitions": "0"}, "partitions must be at least 1"),
    "bad content": ({"content": "video"}, "content must be text or numbers"),
    "bad segments": ({"segments": "0:1:2"}, "'0:1:2' is not a segment"),
    "segments with a gap": ({"segments": "0:1:2:2;2:3:1:1"}, "a segment starts at 2.0 s"),
    "large vocabulary": ({"vocabulary": "70000"}, "vocabulary must be from 1 to 65536"),
    "too few counts": ({"until_rows": "1,2"}, "until_rows must have a count of rows for each of the 3"),
}


@pytest.mark.parametrize(("options", "sentence"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_refused(spark: SparkSession, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        batch(spark, REPLAY, **options)


def test_an_endless_load_cannot_be_read_as_a_batch(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="needs the option close_s or until_rows"):
        batch(spark, replace(REPLAY, close_s=None)).collect()


def test_micro_batches_and_a_restart_read_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"

    def start() -> StreamingQuery:
        writer = stream(spark, REPLAY).writeStream.format("parquet").trigger(processingTime="200 milliseconds")
        return writer.option("checkpointLocation", str(checkpoint)).start(str(out))

    query = start()
    wait_for(query, lambda: status(spark, checkpoint).get("read_rows", 0) > 0)
    query.stop()
    start_ms = start_noted(checkpoint)
    assert status(spark, checkpoint) == {}
    query = start()
    wait_for(query, lambda: drained(spark, checkpoint))
    total = sum(REPLAY.rows())
    assert status(spark, checkpoint) == {
        "due_rows": total,
        "read_rows": total,
        "backlog_rows": 0,
        "drained": True,
        "start_ms": start_ms,
    }
    query.stop()
    rows = spark.read.parquet(str(out)).collect()
    assert len(rows) == total
    assert {tuple(r) for r in rows} == expected_rows(REPLAY, start_ms)


def test_real_time_rows_come_when_due_and_once(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    rows = stream(spark, REPLAY).selectExpr("partition", "k", "due_ms", "value", f"{NOW_MS} as seen_ms")
    writer = rows.writeStream.format("memory").queryName("seen").outputMode("update")
    query = real_time(writer, "2 seconds").option("checkpointLocation", str(checkpoint)).start()
    wait_for(query, lambda: drained_progress(query))
    progress = query.lastProgress
    query.stop()
    seen = spark.table("seen").collect()
    total = sum(REPLAY.rows())
    assert len(seen) == total
    assert {tuple(r)[:4] for r in seen} == expected_rows(REPLAY, start_noted(checkpoint))
    assert min(r["seen_ms"] - r["due_ms"] for r in seen) >= 0
    assert progress is not None
    metrics = progress.sources[0].metrics
    assert metrics["read_rows"] == metrics["due_rows"] == str(total)


def word_counts(spark: SparkSession, replay: Replay, checkpoint: Path) -> StreamingQuery:
    """A real-time word count whose result is its state; nothing is left for the sink."""
    words = stream(spark, replay).selectExpr(*WORDS_SQL)
    counts = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL)).where("occurrences < 0")
    writer = counts.writeStream.format("console").outputMode("update")
    return real_time(writer, "1 second").option("checkpointLocation", str(checkpoint)).start()


def test_a_real_time_word_count_is_exact_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    query = word_counts(spark, REPLAY, checkpoint)
    wait_for(query, lambda: status(spark, checkpoint).get("read_rows", 0) > 0)
    start_ms = start_noted(checkpoint)
    query.stop()  # in the middle of an epoch, which is read again
    query = word_counts(spark, REPLAY, checkpoint)
    wait_for(query, lambda: drained(spark, checkpoint))
    assert status(spark, checkpoint)["start_ms"] == start_ms
    query.stop()
    state = spark.read.format("statestore").load(str(checkpoint))
    found = state.selectExpr("key.word", "value.*").collect()
    assert truth_by_numpy(REPLAY).faults(counts_of(0, ((r[0], r[1], r[2]) for r in found))) == ()

    with pytest.raises(StreamingQueryException, match="belongs to another load: seed was 11 and is now 12"):
        word_counts(spark, replace(REPLAY, lines=replace(REPLAY.lines, seed=12)), checkpoint).awaitTermination(30)


def test_a_running_load_can_be_closed(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    endless = replace(REPLAY, close_s=None)
    query = word_counts(spark, endless, checkpoint)
    wait_for(query, lambda: status(spark, checkpoint).get("read_rows", 0) > 0)
    assert status(spark, checkpoint)["drained"] is False
    jvm(spark).ReplayStreams.close(str(checkpoint), 3.0)
    wait_for(query, lambda: drained(spark, checkpoint))
    query.stop()
    with pytest.raises(Exception, match="no load runs at"):
        jvm(spark).ReplayStreams.close(str(checkpoint), 3.0)
    offsets = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda f: int(f.name))
    read = json.loads(offsets.read_text().splitlines()[-1])
    # What was read before the order to close stays read.
    assert all(k >= n for k, n in zip(read, replace(REPLAY, close_s=3.0).rows(), strict=True))
    found = spark.read.format("statestore").load(str(checkpoint)).selectExpr("key.word", "value.*").collect()
    assert truth_by_numpy(endless, read).faults(counts_of(0, ((r[0], r[1], r[2]) for r in found))) == ()
