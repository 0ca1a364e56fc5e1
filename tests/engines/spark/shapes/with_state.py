"""Shapes with state: counts, windows, deduplications, and two of them in one query."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from tests.engines.spark.shapes.shape import (
    CHECK_SQL,
    EVENT_SQL,
    LATE_EVERY,
    WINDOW_MS,
    Judgement,
    Key,
    Result,
    Row,
)

from barograph.engines.spark.query.naming import named


def aggregate(result: Result) -> DataFrame:
    return next(frame for name, frame in result.state.items() if "dedupe" not in name)


def dealt(rows: DataFrame) -> DataFrame:
    return named(rows.repartition(2).where("k >= 0"), "deal")


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
