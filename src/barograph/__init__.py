"""Barograph: an adaptive online scheduler for stream topologies on Spark."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from barograph.engines.spark.query.naming import named

if TYPE_CHECKING:  # Spark is imported when a query is started, not before
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from barograph.engines.spark.query.supervised_query import Supervised

__all__ = ["__version__", "batch_seen", "configure", "named", "start", "trigger"]
__version__ = "0.1.0"

# A program that uses Barograph decides itself what is logged, and where; ``barograph.logs`` is for our own processes.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def configure(builder: "SparkSession.Builder") -> "SparkSession.Builder":
    """A session's builder with the settings that load Barograph, before the session is made, as in a notebook:

        spark = barograph.configure(SparkSession.builder.appName("counts")).getOrCreate()

    Its own settings are kept; ours are appended to lists such as spark.jars and spark.sql.extensions. The executors get
    the plug-in from the driver, wherever they run. Options of queries in barograph.toml of the working directory hold.
    """
    from barograph.submit.configure import configure as configured

    return configured(builder)


def start(
    build: "Callable[[], DataStreamWriter] | DataStreamWriter",
    checkpoint: str | None = None,
    level: int | None = None,
    desired_nodes: int | None = None,
    minimum_nodes: int | None = None,
    policy: str | None = None,
    mode: str | None = None,
    options: Mapping[str, object] | None = None,
    limits: Mapping[str, tuple[int | None, int | None]] | None = None,
    history: str | None = None,
    session: "SparkSession | None" = None,
) -> "Supervised":
    """Start a query and keep it alive: it is started again from its checkpoint whenever an executor or a node dies.

    ``build`` is the query as a DataStreamWriter that is not started, or a function that returns one; a function is
    called again, ahead, for each restart. The checkpoint is the writer's own ``checkpointLocation`` unless one is given
    here. The handle is used like the one that ``DataStreamWriter.start()`` returns. The session needs the settings that
    ``configure`` adds; other processes see the query with ``barograph status``.

    policy: also steer it, by a controller in a process of its own, which ends with this one; without a policy the query
    is only kept alive. mode: ``act``, or ``advise``: decisions are recorded and nothing is changed. A line on standard
    error says how to look at them. history: a folder for decisions. A controller steers all queries of its driver:
    others are started with the same policy and mode.
    level, desired_nodes, minimum_nodes: its priority (1 is highest) and what policies that share out whole nodes go by.
    limits: the least and the most instances of operators, as in ``{"split": (1, 8)}``; None for no bound.
    options: those of queries and controllers by name (``"guards.cooldown": "30s"``), and those of the policy by theirs.
    session: that of the query, where ``build`` is a function and the program has several; a writer has its own.

    Where an argument is None, the option of its name decides (``policy``, ``mode``, ``history``, ``query.level`` ...):
    spark.barograph.* keys of the session, then barograph.toml of the working directory, then the defaults. Keys of
    single queries may be set by ``spark.conf.set`` before each start. So do restart.* for restarts, and recovery and
    epochs.* for the length of its epochs: they are ended early enough that a failure is made up for within the recovery
    target, unless a policy only advises and ``recovery`` was not set.
    """
    from barograph.config import resolve
    from barograph.config.when_read import refuse_without_policy
    from barograph.config.written.operators import ranges_as_text
    from barograph.control.steered_start import split_options, start_query
    from barograph.engines.spark.driver.application import session_of, session_settings, supervisor_of_session
    from barograph.priority.declared_triggers import DeclaredTriggers
    from barograph.priority.service import priorities_of, serve
    from barograph.submit.hooks import say_left_out_of_session
    from barograph.submit.steered_line import say_steered

    given: dict[str, object] = {"policy": policy, "mode": mode, "history": history}
    given |= {"query.level": level, "query.desired-nodes": desired_nodes, "query.minimum-nodes": minimum_nodes}
    given |= {"query.instances": None if limits is None else ranges_as_text(limits)}
    ours, of_policy = split_options(options or {})
    spark = session or session_of(build)
    config = resolve(spark=session_settings(spark), mapping=ours, arguments=given)
    refuse_without_policy(ours, config)
    triggers = DeclaredTriggers.of(config)
    supervisor = supervisor_of_session(serve, spark)
    say_left_out_of_session(spark)
    query = start_query(supervisor, build, config, checkpoint, of_policy)
    if config["policy"] is not None:
        say_steered(config["policy"], config["mode"])
    if triggers:
        priorities_of(supervisor).watch(query.topology, triggers)
    return query


def trigger(topology: str, on: bool, level: int | None = None) -> None:
    """Turn the priority trigger of a query of this program on (its level is then ``level``; 1 is highest, and what it
    is without one) or off.

    Returns at once. The query's sources pause, its rows drain, it is rescheduled, its sources go on: no row is lost.
    """
    from barograph.engines.spark.driver.application import supervisor_of_session
    from barograph.priority.service import priorities_of, serve

    priorities_of(supervisor_of_session(serve)).trigger(topology, on, level)


def batch_seen(topology: str, values: Sequence[float]) -> None:
    """Report the values of a batch's rows of a query of this program that was started with the option priority.above.

    Its trigger is turned on if most of them are above that (priority.above-part), and off if few are. Returns at once.
    """
    from barograph.engines.spark.driver.application import supervisor_of_session
    from barograph.priority.service import priorities_of, serve

    priorities_of(supervisor_of_session(serve)).batch_seen(topology, values)
