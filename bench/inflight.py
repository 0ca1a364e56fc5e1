"""Effect of the time limit on rows in flight, for an operator of 0.01, 1 and 10 ms a row at twice its capacity.

In one warm application, in turn with and without the limit (without: Spark's buffer sizes). JSON, per cost of a row:
``rows_s`` executed and ``pending_rows`` in front of the operator, ``cut_s`` from a cut's order until it is committed,
each as a list of [with, without]; a cut that takes longer than LONGEST_S counts as LONGEST_S.
With the limit alone, ``cut_s`` as a list: ``slow rows``, 16 senders of rows of 0.4 s; ``slower rows``, a cut that is
ordered as soon as rows of 0.05 ms have become rows of 5 ms.
Bars: the worst median of cuts with the limit at most 1 s, of slow rows 3 s, of slower rows 5 s; the worst median ratio
of throughput at least 0.97.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import IN_FLIGHT_MS, tuned_settings
from barograph.engines.spark.query.naming import named
from barograph.engines.spark.session import real_time
from barograph.experiments.running.warm_up import require_alive, warm_up
from barograph.model import Instance, Load, Plan
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, open_local_cluster
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import FORMAT, Replay
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish
from bench.boundary import SPARKS_OWN

COSTS_MS = (0.01, 1.0, 10.0)
PAIRS = 3
LONGEST_S = 20.0
SENDERS = 16
SLOW_MS = 400.0
FAST_MS, SLOWER = 0.05, 100
SLOWER_FROM = 60_000  # rows of each of two sources: some six seconds of fast rows
NAME = "one-slow-operator"
BUSY = Instance(NAME, "busy", 0)
Pair = list[float]


def main() -> int:
    result: dict[str, object] = {"in_flight_ms": IN_FLIGHT_MS}
    cuts, ratios = [], []
    with open_local_cluster(ClusterSettings(seats=8)) as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        stage.engine.commit_timeout_s = LONGEST_S
        for cost_ms in COSTS_MS:
            found = compare(stage, cost_ms)
            cuts.append(statistics.median(p[0] for p in found["cut_s"]))
            ratios.append(statistics.median(p[0] / p[1] for p in found["rows_s"]))
            result[f"{cost_ms:g} ms"] = {
                **found, "ratio": round(ratios[-1], 3), "cut_with_s": figures([p[0] for p in found["cut_s"]]),
                "cut_without_s": figures([p[1] for p in found["cut_s"]]),
            }  # fmt: skip
        stage.turn(tuned_settings())
        slow = [slow_rows_cut_s(stage) for _ in range(PAIRS)]
        slower = [slower_rows_cut_s(stage) for _ in range(PAIRS)]
        result |= {"slow rows": {"cut_s": slow}, "slower rows": {"cut_s": slower}}
    return finish(
        result,
        [
            Bar("a cut with the limit, worst median, s", max(cuts), at_most=1.0),
            Bar("a cut of slow rows of many senders, median, s", statistics.median(slow), at_most=3.0),
            Bar("a cut when rows have become slower, median, s", statistics.median(slower), at_most=5.0),
            Bar("throughput with the limit against without, worst median", min(ratios), at_least=0.97),
        ],
    )


def compare(stage: LocalCluster, cost_ms: float) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {"rows_s": [], "pending_rows": [], "cut_s": []}
    for turn in range(PAIRS + 1):
        pair: dict[bool, tuple[float, float, float]] = {}
        for bounded in (True, False) if turn % 2 == 0 else (False, True):
            stage.turn(tuned_settings() if bounded else SPARKS_OWN)
            pair[bounded] = one(stage, cost_ms)
            print(
                f"{cost_ms:g} ms a row, {'with' if bounded else 'without'} the limit: {pair[bounded][0]:,.0f} rows/s, "
                f"{pair[bounded][1]:,.0f} waiting, cut {pair[bounded][2]:.2f} s", file=sys.stderr, flush=True,
            )  # fmt: skip
        if turn > 0:  # the first pair is warm-up
            for at, key in enumerate(found):
                found[key].append([round(pair[True][at], 3), round(pair[False][at], 3)])
    return found


def one(
    stage: LocalCluster, cost_ms: float, warm_s: float = 3.0, measured_s: float = 6.0
) -> tuple[float, float, float]:
    with running(stage, cost_ms) as query:
        settle(stage, query, warm_s)
        stage.engine.observe()
        start = time.monotonic()
        settle(stage, query, measured_s)
        seen = stage.engine.observe()
        rate = seen.metrics.row(BUSY).executed / (time.monotonic() - start)
        return rate, seen.metrics.row(BUSY).pending, cut_s(stage, f"{cost_ms:g} ms")


def slow_rows_cut_s(stage: LocalCluster) -> float:
    """Rows sleep: sixteen senders and 0.4 s of CPU a row would leave other threads of two cores none."""
    with running(stage, SLOW_MS, SENDERS, f"reflect('java.lang.Thread', 'sleep', {round(SLOW_MS)}L) as slept") as query:
        settle(stage, query, 6.0)
        return cut_s(stage, "slow rows")


def slower_rows_cut_s(stage: LocalCluster) -> float:
    fast = round(FAST_MS * 1000)
    cost = f"if(k < {SLOWER_FROM}, {fast}, {fast * SLOWER})"
    work = f"reflect('org.apache.spark.barograph.source.BusyWork', 'spin', {cost}) as spun"
    with running(stage, FAST_MS, work=work) as query:
        executed = [0.0]
        while sum(executed) < SLOWER_FROM or executed[-1] > max(executed) / 10:
            settle(stage, query, 0.3)
            seen = stage.engine.observe().metrics
            executed.append(seen.row(BUSY).executed if BUSY in seen.instances else 0.0)
        return cut_s(stage, "slower rows")


def cut_s(stage: LocalCluster, what: str) -> float:
    outcome = stage.engine.apply(Plan(cuts=(NAME,)))
    assert not outcome.refused, outcome.refused
    took_s = outcome.order_to_commit_s or LONGEST_S
    print(f"{what}: cut {took_s:.2f} s", file=sys.stderr, flush=True)
    return took_s


@contextmanager
def running(stage: LocalCluster, cost_ms: float, sources: int = 2, work: str = "") -> Iterator[StreamingQuery]:
    """Sources and one slow operator, at twice its capacity. work: what it does for each row; else it takes cost_ms."""
    load = Load.parse(f"constant {max(round(2000 / cost_ms), 5 * sources)}")
    replay = Replay(load.schedule(1.0), sources, LineShape(seed=2))
    lines = stage.spark.readStream.format(FORMAT).options(**replay.options()).load()
    spin = f"reflect('org.apache.spark.barograph.source.BusyWork', 'spin', {round(cost_ms * 1000)}) as spun"
    frame = named(lines.repartition(1).selectExpr("k", work or spin), BUSY.operator)
    with tempfile.TemporaryDirectory(prefix="barograph-bench-", ignore_cleanup_errors=True) as folder:
        writer = frame.writeStream.queryName(NAME).outputMode("update").format("noop")
        query = real_time(writer.option("checkpointLocation", folder), 600.0).start()
        try:
            settle(stage, query, 60.0, up=True)
            yield query
        finally:
            query.stop()


def settle(stage: LocalCluster, query: StreamingQuery, seconds: float, up: bool = False) -> None:
    """Observe for ``seconds``; up: only until every instance runs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        require_alive(query)
        stage.engine.refresh()
        epoch = stage.engine.present(NAME)
        if up and epoch is not None and epoch.is_up:
            return
        time.sleep(0.1)
    if up:
        raise TimeoutError("not every instance started in time")
