"""A run on Spark alone: the same query, cluster, load and verdict, without the plug-in. What a user has today.

The jar is on the class path for the replay source and for a sink that times rows; nothing of the plug-in runs. The
query is not supervised: if it dies the run has failed. Spark knows no cut, so nothing is known of an epoch before it
has ended, and the drain waits for the end of a regular one. What cannot be known so is told as unknown.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.conf import plain_settings
from barograph.engines.spark.own_figures import committed, next_job, running_tasks, task_figures
from barograph.engines.spark.session import await_executors, open_session, real_time
from barograph.experiments.degradation import degradation, stops_of
from barograph.experiments.live import LiveLine
from barograph.experiments.meter import UNKNOWN, Metered
from barograph.experiments.pauses import longest, pauses
from barograph.experiments.place import Place, open_place
from barograph.experiments.report import RunReport
from barograph.experiments.run_settings import LEAST_PLAIN_EPOCH_S, RunSettings, check
from barograph.experiments.steered import Steered
from barograph.experiments.verdict import judge
from barograph.experiments.warm import WARM_UP_ROWS_S, RunFailed, require_alive
from barograph.model import Load, Node
from barograph.workloads import wordcount
from barograph.workloads.replay import Replay
from barograph.workloads.truth import truth_by_spark

NAME = "spark"
SINK = "org.apache.spark.barograph.TimedSink"
LEAD_S = 8.0  # between the query's start and the first row; no one tells when every task runs but Spark's own listener
_WARM_EPOCHS = 3


def run_plain(
    settings: RunSettings,
    show: Callable[[LiveLine], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> RunReport:
    """Everything from an empty machine to the verdict; what was started is ended, whatever happens."""
    check(settings)
    with ExitStack() as ending:
        place = open_place(settings.cluster, settings.master, ending, say)
        say("starting Spark without the plug-in")
        spark = open_session("barograph run spark", plain_settings(), place.conf)
        ending.callback(spark.stop)
        await_executors(spark, place.executors())
        checkpoint = settings.checkpoint
        if checkpoint is None:
            checkpoint = Path(tempfile.mkdtemp(prefix="barograph-checkpoint-"))
            ending.callback(shutil.rmtree, checkpoint, True)
        say("warming up")
        _warm_up(spark, settings)
        return _measured(settings, spark, place, checkpoint, show, say)


def _start(spark: SparkSession, settings: RunSettings, replay: Replay, name: str, checkpoint: str) -> StreamingQuery:
    unnamed = lambda frame, _: frame  # noqa: E731
    writer = wordcount.build(spark, replay, settings.parallelism, toil_us=settings.toil_us, name=unnamed)
    writer = writer.queryName(name).format(SINK).option("name", name).option("checkpointLocation", checkpoint)
    epoch_s = settings.epoch_s if name == wordcount.NAME else LEAST_PLAIN_EPOCH_S
    return real_time(writer, epoch_s).start()


def _warm_up(spark: SparkSession, settings: RunSettings) -> None:
    """The same query for a few short epochs, without the work that is to be measured."""
    name = f"{wordcount.NAME}-warm-up"
    replay = Replay(Load.parse(f"constant {WARM_UP_ROWS_S}").schedule(1.0), settings.parallelism["source"])
    with tempfile.TemporaryDirectory(prefix="barograph-warm-up-", ignore_cleanup_errors=True) as folder:
        light = RunSettings(load=settings.load, parallelism=settings.parallelism)
        query = _start(spark, light, replay, name, folder)
        try:
            _await(query, lambda: committed(spark, name).epochs >= _WARM_EPOCHS, 90.0, "the warm-up did not end")
        finally:
            query.stop()


def _measured(
    settings: RunSettings,
    spark: SparkSession,
    place: Place,
    checkpoint: Path,
    show: Callable[[LiveLine], None],
    say: Callable[[str], None],
) -> RunReport:
    schedule = settings.load.schedule(settings.seconds)
    start_ms = int((time.time() + LEAD_S) * 1000)
    replay = Replay(
        schedule, settings.parallelism["source"], settings.lines, close_s=settings.seconds, start_ms=start_ms
    )
    first_job = next_job(spark)
    say("starting the query")
    query = _start(spark, settings, replay, wordcount.NAME, str(checkpoint))
    try:
        count = sum(settings.parallelism.values())
        _await(query, lambda: running_tasks(spark) >= count, 90.0, "the instances of the query did not start")
        place.fence()
        while (now_s := time.time() - start_ms / 1000) < settings.seconds:
            require_alive(query)
            rate = schedule.rate_at(max(now_s, 0.0))
            show(LiveLine(now_s, rate, None, None, None, committed(spark, wordcount.NAME).epochs, None, {}))
            time.sleep(1.0)
        say("draining: the last epoch ends when its time is over")
        due, deadline = sum(replay.rows()), time.monotonic() + settings.drain_s + settings.epoch_s
        while (left := due - sum(committed_offsets(checkpoint))) > 0 and time.monotonic() < deadline:
            require_alive(query)
            time.sleep(0.2)
    finally:
        query.stop()
    say("reading the state back")
    figures, seen = task_figures(spark, first_job), committed(spark, wordcount.NAME)
    verdict = judge(
        truth_by_spark(spark, replay, committed_offsets(checkpoint)), wordcount.counted(spark, str(checkpoint))
    )
    words = settings.lines.words_per_line
    found = pauses(seen.output, schedule, start_ms, settings.seconds, words)
    degraded = degradation(seen.output, schedule, start_ms, settings.seconds, words, stops_of(found))
    return RunReport(
        wordcount.NAME, str(settings.load), settings.seconds, due, max(0, left), verdict, longest(found),
        seen.epochs, (), (), (), sum(seen.output.values()), seen.latency, settings.timeout_s,
        alone(figures.workers, figures.cpu_s, place.nodes, settings.seconds), start_ms, degraded,
    )  # fmt: skip


def alone(
    workers: Sequence[Mapping[tuple[str, str], int]], cpu_s: float, nodes: Mapping[str, Node], seconds: float
) -> Steered:
    """Nothing limits an instance: it has been given a core, and a node never gives more than it has, as elsewhere.

    workers: of each epoch, tasks by host and executor. Which of them moved from one epoch to the next is not known, nor
    is what they sent to each other.
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
