"""Before anything is measured: the same query for a moment, so that classes are loaded and code is compiled."""

import tempfile
import time
from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import real_time
from barograph.engines.spark.supervise import Supervised
from barograph.model import Load, Plan
from barograph.workloads import wordcount
from barograph.workloads.replay import Replay

WARM_UP_ROWS_S = 2000


class RunFailed(RuntimeError):  # noqa: N818  # named like what happened
    """The query ended before the run did. The text says why."""


def warm_up(
    spark: SparkSession,
    parallelism: dict[str, int],
    say: Callable[[str], None] = lambda _: None,
    repartition: bool = False,
) -> None:
    """Run the same query for a moment, so that classes are loaded and code is compiled before anything is measured.

    repartition: of its state too, for who may scale a stateful operator."""
    say("warming up")
    engine = SparkEngine(spark, {})
    name = f"{wordcount.NAME}-warm-up"
    replay = Replay(Load.parse(f"constant {WARM_UP_ROWS_S}").schedule(1.0), parallelism["source"])
    with tempfile.TemporaryDirectory(prefix="barograph-warm-up-", ignore_cleanup_errors=True) as folder:
        writer = wordcount.build(spark, replay, parallelism).queryName(name)
        query = real_time(writer.option("checkpointLocation", folder), 60.0).start()
        try:
            for _ in range(3):  # an epoch's end and the next one's start are warmed as well
                _await_output(engine, name, query)
                engine.apply(Plan(cuts=(name,)))
        finally:
            query.stop()
        for more in (1, 2) if repartition else ():
            if why := engine.repartition(folder, parallelism["count"] + more):
                raise RunFailed(f"the state of the query cannot be repartitioned: {why}")


def _await_output(engine: SparkEngine, name: str, query: StreamingQuery, timeout_s: float = 90.0) -> None:
    """Until rows of the present epoch have come out for a while."""
    engine.refresh()
    before = sum(engine.sight.output.get(name, {}).values())
    deadline = time.monotonic() + timeout_s
    while sum(engine.sight.output.get(name, {}).values()) < before + 8 * WARM_UP_ROWS_S:
        require_alive(query)
        if time.monotonic() > deadline:
            raise RunFailed(f"no row came out of the query within {timeout_s:g} s")
        time.sleep(0.1)
        engine.refresh()


def require_alive(query: StreamingQuery | Supervised) -> None:
    error = query.exception()
    if error is not None:
        raise RunFailed(f"the query ended: {str(error).splitlines()[0]}")
    if not query.isActive:
        raise RunFailed("the query was stopped by somebody else")
