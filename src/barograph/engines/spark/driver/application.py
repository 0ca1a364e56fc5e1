"""The supervisor of this process's Spark application: one, made at the first use."""

import atexit
import logging
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.tolerated import tolerated
from barograph.model import BadInput

log = logging.getLogger(__name__)

_lock = threading.Lock()
_present: tuple[str, Supervisor] | None = None


def session_settings() -> dict[str, str]:
    """The Spark settings of the active session's application."""
    return dict(_session().sparkContext.getConf().getAll())


def _session() -> SparkSession:
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise BadInput("there is no Spark session yet: make one before barograph.start")
    return spark


def supervisor_of_session(serve: Callable[[Supervisor], Endpoint] = Supervisor.serve) -> Supervisor:
    """The supervisor of the active session's application; a new one if that application is another than before.

    serve: opens the endpoint of a new supervisor. If it fails, the next call makes another one.
    """
    global _present
    with _lock:
        spark = _session()
        application = spark.sparkContext.applicationId
        if _present is None or _present[0] != application:
            supervisor = Supervisor(spark)
            try:
                endpoint = serve(supervisor)
            except BaseException:
                with tolerated(log, "a supervisor that could not be served", Exception):
                    supervisor.close()  # else its upkeep would go on beside that of the next one
                raise
            atexit.register(endpoint.close)  # the socket's file would outlive the process
            _present = (application, supervisor)
        return _present[1]
