"""The supervisor of this process's Spark application: one, made at the first use."""

import atexit
import logging
import threading
from collections.abc import Callable

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.config.when_read import at_a_start
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.tolerated import tolerated
from barograph.model import BadInput

log = logging.getLogger(__name__)

_lock = threading.Lock()
_present: tuple[str, Supervisor] | None = None


def session_of(build: object = None) -> SparkSession:
    """That of a query's writer. Else the one that is active in this thread, or else the first of the application:
    PySpark gives each thread of a program a thread of the JVM of its own, in which no session is active."""
    if isinstance(build, DataStreamWriter):
        return build._df.sparkSession
    if SparkContext._active_spark_context is not None:  # else the first session may be one that has ended
        try:
            return SparkSession.active()
        except PySparkRuntimeError as error:
            log.debug("a context without a session: %s", error)
    raise BadInput("there is no Spark session yet: make one before barograph.start")


def application_settings(spark: SparkSession) -> dict[str, str]:
    """The Spark settings of a session's application, which stay as they were when it was made."""
    return dict(spark.sparkContext.getConf().getAll())


def session_settings(spark: SparkSession) -> dict[str, str]:
    """The Spark settings for a query that is started now in this session: those of its application, and what the
    session says for single queries. Refused: other options that were set in the session only."""
    return at_a_start(application_settings(spark), spark.conf.getAll)


def supervisor_of_session(
    serve: Callable[[Supervisor], Endpoint] = Supervisor.serve, spark: SparkSession | None = None
) -> Supervisor:
    """The supervisor of a session's application; a new one if that application is another than before.

    serve: opens the endpoint of a new supervisor. If it fails, the next call makes another one. spark: None for the
    session of this thread or program.
    """
    global _present
    with _lock:
        spark = spark or session_of()
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
