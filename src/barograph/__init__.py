"""Barograph: an adaptive online scheduler for stream topologies on Spark."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barograph.naming import named

if TYPE_CHECKING:  # Spark is imported when a query is started, not before
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from barograph.engines.spark.supervise import Supervised

__all__ = ["__version__", "named", "start", "trigger"]
__version__ = "0.1.0"


def start(
    build: "Callable[[], DataStreamWriter]",
    checkpoint: str | None = None,
    level: int = 2,
    desired_nodes: int | None = None,
    minimum_nodes: int | None = None,
) -> "Supervised":
    """Start a query and keep it alive: it is started again from its checkpoint whenever an executor or a node dies.

    ``build`` returns the query as a DataStreamWriter that is not started; it is called again, ahead, for each life. The
    checkpoint is the writer's own ``checkpointLocation`` unless one is given here. The handle is used like the one
    that ``DataStreamWriter.start()`` returns. The session needs the settings that ``barograph conf`` prints; other
    processes see the query with ``barograph status``.

    level, desired_nodes, minimum_nodes: its priority (1 is highest) and what policies that share out whole nodes go by.
    """
    from barograph.engines.spark.application import supervisor_of_session
    from barograph.engines.spark.asks import Asks
    from barograph.priority.served import serve

    asks = Asks(level, desired_nodes, minimum_nodes)
    return supervisor_of_session(serve).start(build, checkpoint, asks=asks)


def trigger(topology: str, on: bool, level: int = 1) -> None:
    """Turn the priority trigger of a query of this program on (its level is then ``level``; 1 is highest) or off.

    Returns at once. The query's sources pause, its rows drain, it is rescheduled, its sources go on: no row is lost.
    """
    from barograph.engines.spark.application import supervisor_of_session
    from barograph.priority.served import priorities_of, serve

    priorities_of(supervisor_of_session(serve)).trigger(topology, on, level)
