"""One run of a workload on a real cluster: everything it needs is started here, and always ended."""

from collections.abc import Callable
from contextlib import ExitStack

from pyspark.sql import DataFrame

from barograph.engines.spark.conf import enforcing, in_flight, plugin_settings, workloads_settings
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.interfaces import ArrangedQueries
from barograph.engines.spark.session import open_session
from barograph.experiments.report import RunReport
from barograph.experiments.run_settings import RunSettings, check, check_fits, checkpoint_folder
from barograph.experiments.running.in_progress import RunInProgress
from barograph.experiments.running.journal import Journal
from barograph.experiments.running.live_table import LiveLine
from barograph.experiments.running.run_cluster import open_run_cluster
from barograph.experiments.running.topic_feeds import open_feeds
from barograph.experiments.running.warm_up import warm_up
from barograph.experiments.steering.worker_sizes import shared_workers
from barograph.kafka import connector_jars
from barograph.priority.service import serve
from barograph.workloads.workload import unchanged


def run(
    settings: RunSettings,
    show: Callable[[LiveLine], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    tamper: Callable[[DataFrame], DataFrame] = unchanged,
) -> RunReport:
    """Run the workload and check its result. Everything that was started is ended, also after an error."""
    check(settings)
    say(f"{settings.workload.name}: {settings.workload.meaning}")
    with ExitStack() as ending:
        feeds = None if settings.kafka is None else open_feeds(settings, ending, say)
        cluster = open_run_cluster(settings.cluster, settings.master, ending, say, settings.conf)
        say("starting Spark")
        bounded, elsewhere = in_flight(settings.in_flight_s), cluster.run is None
        if settings.steering is not None:
            bounded |= enforcing(settings.steering.enforce)
        more = () if settings.kafka is None else connector_jars()
        loaded = {**plugin_settings(elsewhere), **workloads_settings(elsewhere, more)}
        spark = open_session(
            "barograph run", loaded, cluster.conf, settings.conf, bounded, log=settings.spark_log(say),
            properties=settings.properties,
        )  # fmt: skip
        ending.callback(spark.stop)
        cluster.await_executors(spark)
        engine = SparkEngine(spark, cluster.nodes, timeout_s=settings.timeout_s)
        seen: ArrangedQueries = engine
        workers, journal = seen.workers(), Journal(settings.journal)
        if elsewhere and not journal.earlier.begun:
            slots = {n.name: n.slots for n in seen.nodes}
            check_fits(settings, slots, sum(w.seats for w in workers))
            say(f"{len(workers)} executors on {', '.join(slots)}")
        policy = None if settings.steering is None else settings.steering.decider()
        if shared := shared_workers(policy, min(n.slots for n in seen.nodes)):
            say(shared)
        supervisor = Supervisor(spark, engine=engine)
        ending.callback(supervisor.close)
        serve(supervisor)
        checkpoint = checkpoint_folder(settings, ending)
        if not journal.earlier.begun:
            scaled = {a.rescale.operator for a in settings.actions if a.rescale is not None}
            repartition = settings.steering is not None or not scaled.isdisjoint(settings.workload.stateful())
            beside = checkpoint.parent if elsewhere else None  # where every host sees it
            with ExitStack() as warm:
                what = (settings.workload, settings.parallelism)
                topics = () if feeds is None else warm.enter_context(feeds.warm(*what))
                warm_up(spark, *what, say, repartition, beside, topics, settings.busy_us)
            cluster.await_compiled()
        return RunInProgress(
            settings, spark, supervisor, cluster, checkpoint, journal, show, say, tamper, feeds
        ).whole()
