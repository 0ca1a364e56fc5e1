"""Which kind of ``Executors`` an application has, by its master."""

from collections.abc import Callable, Mapping

from barograph.config import resolve
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.executors.embedded import EmbeddedExecutors
from barograph.engines.spark.executors.port import ExecutorBounds, ExecutorRequests, Executors
from barograph.engines.spark.executors.requested import RequestedExecutors

_STANDALONE = ("spark://", "local-cluster")
_DEFAULT = 2  # of spark.executor.instances, by Spark


def executors_of(
    requests: ExecutorRequests,
    conf: Mapping[str, str],
    run: Run | None,
    application: str,
    live: Callable[[], int],
) -> Executors | None:
    """conf: of the Spark session. run: its embedded cluster, if it has one. None: Spark runs in one process."""
    bounds = ExecutorBounds(**resolve(spark=conf).fields("executors"))
    master = conf.get("spark.master", "")
    if run is not None:
        return EmbeddedExecutors(requests, run, application, bounds)
    if master.startswith(_STANDALONE):
        return RequestedExecutors(requests, live, None, bounds)
    if master.startswith("local"):
        return None
    return RequestedExecutors(requests, live, int(conf.get("spark.executor.instances", _DEFAULT)), bounds)
