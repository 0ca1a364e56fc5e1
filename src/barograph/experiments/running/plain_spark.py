"""A run on Spark without the plug-in: the same query, cluster, load and verdict.

The jar is on the class path for the replay source and for a sink that times rows; nothing of the plug-in runs. The
query is not supervised: if it fails, the run has failed. Spark cannot cut an epoch, so nothing is known of an epoch
before it ends, and the drain waits for the end of a regular one. Figures that cannot be measured are unknown.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.conf import plain_settings
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.spark_status import committed, next_job, running_tasks, task_figures
from barograph.engines.spark.session import open_session, real_time
from barograph.experiments.figures.degradation import degradation, stops_of
from barograph.experiments.figures.pauses import longest, pauses
from barograph.experiments.figures.run_meter import UNKNOWN, Metered
from barograph.experiments.figures.steered import Steered
from barograph.experiments.report import RunReport
from barograph.experiments.run_settings import LEAST_PLAIN_EPOCH_S, RunSettings, check, checkpoint_folder
from barograph.experiments.running.live_table import LiveLine
from barograph.experiments.running.run_cluster import RunCluster, open_run_cluster
from barograph.experiments.running.warm_up import RunFailed, require_alive, warm_up_inputs
from barograph.experiments.verdict import judge
from barograph.model import Node
from barograph.workloads.replay import Replay
from barograph.workloads.workload import rows_due

NAME = "spark"
SINK = "org.apache.spark.barograph.source.TimedSink"
LEAD_S = 8.0  # between the query's start and the first row: long enough for every task to start
_WARM_EPOCHS = 3


def run_plain(
    settings: RunSettings,
    show: Callable[[LiveLine], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> RunReport:
    """Run the workload and check its result. Everything that was started is ended, also after an error."""
    check(settings)
    say(f"{settings.workload.name}: {settings.workload.meaning}")
    with ExitStack() as ending:
        cluster = open_run_cluster(settings.cluster, settings.master, ending, say, settings.conf)
        say("starting Spark without the plug-in")
        spark = open_session("barograph run spark", plain_settings(), cluster.conf, log=settings.spark_log(say))
        ending.callback(spark.stop)
        cluster.await_executors(spark)
        checkpoint = checkpoint_folder(settings, ending)
        say("warming up")
        _warm_up(spark, settings)
        return _measured(settings, spark, cluster, checkpoint, show, say)


def _start(
    spark: SparkSession, settings: RunSettings, inputs: Sequence[Replay], name: str, checkpoint: str
) -> StreamingQuery:
    writer = settings.workload.query(spark, inputs, settings.parallelism, settings.busy_us, name=lambda frame, _: frame)
    writer = writer.queryName(name).format(SINK).option("name", name).option("checkpointLocation", checkpoint)
    return real_time(writer, settings.epoch_s).start()


def _warm_up(spark: SparkSession, settings: RunSettings) -> None:
    """The same query for a few short epochs, without busy work."""
    name = f"{settings.workload.name}-warm-up"
    inputs = warm_up_inputs(settings.workload, settings.parallelism)
    with tempfile.TemporaryDirectory(prefix="barograph-warm-up-", ignore_cleanup_errors=True) as folder:
        light = replace(settings, busy_us={}, epoch_s=LEAST_PLAIN_EPOCH_S)
        query = _start(spark, light, inputs, name, folder)
        try:
            _await(query, lambda: committed(spark, name).epochs >= _WARM_EPOCHS, 90.0, "the warm-up did not end")
        finally:
            query.stop()


def _measured(
    settings: RunSettings,
    spark: SparkSession,
    cluster: RunCluster,
    checkpoint: Path,
    show: Callable[[LiveLine], None],
    say: Callable[[str], None],
) -> RunReport:
    schedule = settings.load.schedule(settings.seconds)
    start_ms = int((time.time() + LEAD_S) * 1000)
    workload, inputs = settings.workload, settings.inputs(start_ms)
    first_job = next_job(spark)
    say("starting the query")
    query = _start(spark, settings, inputs, workload.name, str(checkpoint))
    try:
        count = sum(settings.parallelism.values())
        _await(query, lambda: running_tasks(spark) >= count, 90.0, "the instances of the query did not start")
        cluster.fence()
        while (now_s := time.time() - start_ms / 1000) < settings.seconds:
            require_alive(query)
            rate = len(inputs) * schedule.rate_at(max(now_s, 0.0))
            show(LiveLine(now_s, rate, None, None, None, committed(spark, workload.name).epochs, None, None, {}))
            time.sleep(1.0)
        say("draining: the last epoch ends when its time is over")
        due, deadline = rows_due(inputs), time.monotonic() + settings.drain_s + settings.epoch_s
        while (left := due - sum(committed_offsets(checkpoint))) > 0 and time.monotonic() < deadline:
            require_alive(query)
            time.sleep(0.2)
    finally:
        query.stop()
    say("reading the result back")
    figures, seen = task_figures(spark, first_job), committed(spark, workload.name)
    expected = workload.due(spark, inputs, committed_offsets(checkpoint))
    verdict = judge(expected, workload.counted(spark, str(checkpoint)))
    results = settings.results_per_load_row()
    found = pauses(seen.output, schedule, start_ms, settings.seconds, results)
    degraded = degradation(seen.output, schedule, start_ms, settings.seconds, results, stops_of(found))
    return RunReport(
        workload.name, str(settings.load), settings.seconds, due, max(0, left), verdict, longest(found),
        seen.epochs, (), (), (), sum(seen.output.values()), seen.latency, settings.timeout_s,
        alone(figures.workers, figures.cpu_s, cluster.nodes, settings.seconds), start_ms, degraded,
    )  # fmt: skip


def alone(
    workers: Sequence[Mapping[tuple[str, str], int]], cpu_s: float, nodes: Mapping[str, Node], seconds: float
) -> Steered:
    """CPU and node figures. Instances have no limit: each counts as a core, those of a node as at most its CPU.

    workers: of each epoch, tasks by host and executor. Moves and traffic between instances are not known.
    """
    ran = [by_worker for by_worker in workers if by_worker]
    if not ran:
        return Steered(NAME, replace(UNKNOWN, used_core_s=cpu_s), None, 0)
    hosts = [{host: sum(n for (h, _), n in epoch.items() if h == host) for host, _ in epoch} for epoch in ran]
    cores = [sum(min(float(n), nodes[host].cpu_pct / 100.0) for host, n in h.items() if host in nodes) for h in hosts]
    core_s = seconds * sum(cores) / len(cores)
    return Steered(
        NAME,
        Metered(
            core_s, core_s, cpu_s, sum(len(h) for h in hosts) / len(ran), max(len(h) for h in hosts),
            sum(len(w) for w in ran) / len(ran), max(len(w) for w in ran),
        ),
        None,
        0,
    )  # fmt: skip


def _await(query: StreamingQuery, condition: Callable[[], bool], timeout_s: float, failure: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        require_alive(query)
        if time.monotonic() > deadline:
            raise RunFailed(f"{failure} within {timeout_s:g} s")
        time.sleep(0.1)
