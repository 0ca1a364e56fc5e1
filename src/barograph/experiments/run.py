"""One run of a workload on a real cluster: everything is started for it here, and ended whatever happens."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame

from barograph.engines.spark.conf import in_flight, plugin_settings
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import await_executors, open_session
from barograph.engines.spark.share_groups import shares_of
from barograph.engines.spark.shares import Shares
from barograph.engines.spark.supervisor import Supervisor
from barograph.experiments.journal import Journal
from barograph.experiments.live import LiveLine
from barograph.experiments.place import open_place
from barograph.experiments.report import RunReport
from barograph.experiments.run_settings import RunSettings, check
from barograph.experiments.under_way import UnderWay
from barograph.experiments.warm import warm_up
from barograph.experiments.workers import shared_workers
from barograph.priority.served import serve


def run(
    settings: RunSettings,
    show: Callable[[LiveLine], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    tamper: Callable[[DataFrame], DataFrame] = lambda words: words,
) -> RunReport:
    """Everything from an empty machine to the verdict; what was started is ended, whatever happens."""
    check(settings)
    with ExitStack() as ending:
        place = open_place(settings.cluster, settings.master, ending, say)
        policy = None if settings.steering is None else settings.steering.decider()
        if shared := shared_workers(policy, place.run.settings.executors):
            say(shared)
        say("starting Spark")
        bounded = in_flight(settings.in_flight_s)
        spark = open_session("barograph run", plugin_settings(), place.conf, bounded)
        ending.callback(spark.stop)
        await_executors(spark, place.executors())
        shares = None
        if settings.steering is not None and settings.steering.enforce:
            shares = Shares(ending.enter_context(shares_of(place.run, say)))
        supervisor = Supervisor(
            spark, engine=SparkEngine(spark, place.nodes, timeout_s=settings.timeout_s, shares=shares)
        )
        ending.callback(supervisor.close)
        serve(supervisor)
        journal = Journal(settings.journal)
        checkpoint = settings.checkpoint
        if checkpoint is None:
            checkpoint = Path(tempfile.mkdtemp(prefix="barograph-checkpoint-"))
            ending.callback(shutil.rmtree, checkpoint, True)
        if not journal.past.begun:
            scaled = {a.rescale.operator for a in settings.actions if a.rescale is not None}
            warm_up(spark, settings.parallelism, say, settings.steering is not None or "count" in scaled)
        return UnderWay(settings, spark, supervisor, place, checkpoint, journal, show, say, tamper).whole()
