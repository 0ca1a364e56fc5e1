"""Runs the query for a few seconds before the measured run, so that classes are loaded and code is compiled."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.interfaces import ArrangedQueries, WatchedQueries
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import real_time
from barograph.model import Load, Plan
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.workload import NO_BUSY_WORK, Workload

WARM_UP_ROWS_S = 2000
ROUND_S = 5.0  # the longest of a round in which rows come out: busy work makes rows slow


class RunFailed(RuntimeError):  # noqa: N818  # named after what happened
    """The query ended before the run did. The message says why."""


def warm_up(
    spark: SparkSession,
    workload: Workload,
    parallelism: Mapping[str, int],
    say: Callable[[str], None] = lambda _: None,
    repartition: bool = False,
    beside: Path | None = None,
    inputs: Sequence[Replay] = (),
    busy_us: Mapping[str, int] = NO_BUSY_WORK,
) -> None:
    """repartition: repartition its state too, for runs that may scale a stateful operator. beside: a folder that all
    executors see; None: any folder of this machine. inputs: those of ``warm_up_inputs`` unless others are given.
    busy_us: as in the measured run, because Spark generates other code for a query with busy work."""
    say("warming up")
    engine: ArrangedQueries = SparkEngine(spark, {})
    name = f"{workload.name}-warm-up"
    inputs = inputs or warm_up_inputs(workload, parallelism)
    rows = WARM_UP_ROWS_S * len(inputs) * workload.results_per_row(LineShape())
    with tempfile.TemporaryDirectory(prefix="barograph-warm-up-", dir=beside, ignore_cleanup_errors=True) as folder:
        writer = workload.query(spark, inputs, parallelism, busy_us).queryName(name)
        query = real_time(writer.option("checkpointLocation", folder), 60.0).start()
        try:
            for _ in range(3):  # an epoch's end and the next one's start are warmed as well
                _await_output(engine, name, query, rows)
                engine.apply(Plan(cuts=(name,)))
        finally:
            query.stop()
        stateful = workload.stateful()
        for more in (1, 2) if repartition and stateful else ():  # all stateful operators have one partition count
            if why := engine.repartition(folder, parallelism[stateful[0]] + more):
                raise RunFailed(f"the state of the query cannot be repartitioned: {why}")


def warm_up_inputs(workload: Workload, parallelism: Mapping[str, int]) -> tuple[Replay, ...]:
    return workload.inputs(Replay(Load.parse(f"constant {WARM_UP_ROWS_S}").schedule(1.0)), parallelism)


def _await_output(
    engine: WatchedQueries, name: str, query: StreamingQuery, rows: int, timeout_s: float = 300.0
) -> None:
    """Until so many more rows have come out, or some have and the time of a round is over."""
    engine.refresh()
    before = engine.output_rows(name)
    begun_s = time.monotonic()
    while (out := engine.output_rows(name)) < before + rows:
        require_alive(query)
        took_s = time.monotonic() - begun_s
        if out > before and took_s > ROUND_S:
            return
        if took_s > timeout_s:
            raise RunFailed(f"no row came out of the query within {timeout_s:g} s")
        time.sleep(0.1)
        engine.refresh()


def require_alive(query: StreamingQuery | Supervised) -> None:
    error = query.exception()
    if error is not None:
        raise RunFailed(f"the query ended: {str(error).splitlines()[0]}")
    if not query.isActive:
        raise RunFailed("the query was stopped from outside the run")
