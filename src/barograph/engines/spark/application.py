"""The one supervisor of the Spark application in this process, made when first asked for."""

import atexit
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from barograph.engines.spark.endpoint import Endpoint
from barograph.engines.spark.supervisor import Supervisor
from barograph.model import BadInput

_lock = threading.Lock()
_present: tuple[str, Supervisor] | None = None


def supervisor_of_session(serve: Callable[[Supervisor], Endpoint] = Supervisor.serve) -> Supervisor:
    """Of the active session's application; a new one when another application has taken its place.

    serve: opens the endpoint of a new one.
    """
    global _present
    with _lock:
        spark = SparkSession.getActiveSession()
        if spark is None:
            raise BadInput("there is no Spark session yet: make one before barograph.start")
        application = spark.sparkContext.applicationId
        if _present is None or _present[0] != application:
            supervisor = Supervisor(spark)
            endpoint = serve(supervisor)
            atexit.register(endpoint.close)  # the socket's file would outlive the process
            _present = (application, supervisor)
        return _present[1]
