"""Barograph: an adaptive online scheduler for stream topologies on Spark."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barograph.engines.spark.query.naming import named

if TYPE_CHECKING:  # Spark is imported when a query is started, not before
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from barograph.engines.spark.query.supervised_query import Supervised

__all__ = ["__version__", "named", "start", "trigger"]
__version__ = "0.1.0"

# A program that uses Barograph decides itself what is logged, and where; ``barograph.logs`` is for our own processes.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def start(
    build: "Callable[[], DataStreamWriter]",
    checkpoint: str | None = None,
    level: int | None = None,
    desired_nodes: int | None = None,
    minimum_nodes: int | None = None,
) -> "Supervised":
    """Start a query and keep it alive: it is started again from its checkpoint whenever an executor or a node dies.

    ``build`` returns the query as a DataStreamWriter that is not started; it is called again, ahead, for each restart.
    The checkpoint is the writer's own ``checkpointLocation`` unless one is given here. The handle is used like the one
    that ``DataStreamWriter.start()`` returns. The session needs the settings that ``barograph conf`` prints; other
    processes see the query with ``barograph status``.

    level, desired_nodes, minimum_nodes: its priority (1 is highest) and what policies that share out whole nodes go by.
    Where they are None, the options query.* decide: spark.barograph.query.* keys of the session, then barograph.toml of
    the working directory, then the defaults. So do restart.* for restarts, and recovery and epochs.* for the length of
    its epochs: they are ended early enough that a failure is made up for within the recovery target.
    """
    from barograph.config import resolve
    from barograph.engines.epoch_length import recovery_of
    from barograph.engines.spark.driver.application import session_settings, supervisor_of_session
    from barograph.engines.spark.query.failures.diagnosis import RestartLimits
    from barograph.engines.spark.query.query_options import QueryOptions
    from barograph.priority.service import serve

    given = {"query.level": level, "query.desired-nodes": desired_nodes, "query.minimum-nodes": minimum_nodes}
    config = resolve(spark=session_settings(), arguments=given)
    return supervisor_of_session(serve).start(
        build,
        checkpoint,
        limits=RestartLimits(**config.fields("restart")),
        options=QueryOptions(**config.fields("query")),
        recovery=recovery_of(config["recovery"], config.fields("epochs")),
    )


def trigger(topology: str, on: bool, level: int = 1) -> None:
    """Turn the priority trigger of a query of this program on (its level is then ``level``; 1 is highest) or off.

    Returns at once. The query's sources pause, its rows drain, it is rescheduled, its sources go on: no row is lost.
    """
    from barograph.engines.spark.driver.application import supervisor_of_session
    from barograph.priority.service import priorities_of, serve

    priorities_of(supervisor_of_session(serve)).trigger(topology, on, level)
