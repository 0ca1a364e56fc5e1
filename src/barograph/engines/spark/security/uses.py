"""What a driver uses that cannot be told from outside, for the doctor: checkpoints, histories, ports of its Python,
and whether its JVM asks for a secret.

Reads only.
"""

import logging
import os
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from barograph.engines.spark.query.checkpoint import checkpoint_of
from barograph.engines.spark.security.closed_driver import AUTHENTICATE
from barograph.engines.spark.security.driver_uses import DriverUses, PythonPort

if TYPE_CHECKING:
    from barograph.engines.spark.driver.supervisor import Supervisor

log = logging.getLogger(__name__)


def uses(supervisor: "Supervisor") -> DriverUses:
    histories = {c["history"] for c in supervisor.controllers.table() if c["attached"]}
    spark = supervisor.spark
    checkpoints = _checkpoints(spark, [q for q in supervisor.queries if q.isActive])
    jvm: Any = spark._jvm
    return DriverUses(
        os.getpid(), tuple(checkpoints), tuple(sorted(histories)), python_ports(spark.sparkContext),
        int(jvm.java.lang.ProcessHandle.current().pid()),
        spark.sparkContext.getConf().get(AUTHENTICATE, "false") == "true",
    )  # fmt: skip


def _checkpoints(spark: SparkSession, queries: list[Any]) -> list[str]:
    """Of supervised queries, which may be between two runs, and of all others that run."""
    found = set()
    for query in (*queries, *spark.streams.active):
        try:
            found.add(checkpoint_of(query))
        except Py4JError as error:  # it has just ended
            log.debug("the checkpoint of %s is not known: %s", query.name, error)
    return sorted(found)


def python_ports(context: SparkContext) -> tuple[PythonPort, ...]:
    """Those that PySpark opens: for accumulators, and for calls from the JVM (foreachBatch, listeners in Python)."""
    found = []
    accumulators = getattr(context, "_accumulatorServer", None)
    if accumulators is not None and isinstance(accumulators.server_address, tuple):  # else a Unix socket
        found.append(PythonPort(accumulators.server_address[1], "accumulators", bool(accumulators.auth_token)))
    gateway: Any = context._gateway
    # An attribute that the gateway does not have would be looked up in the JVM.
    calls = None if gateway is None else vars(gateway).get("_callback_server")
    if calls is not None:
        token = gateway.callback_server_parameters.auth_token
        found.append(PythonPort(calls.server_socket.getsockname()[1], "calls from Java", bool(token)))
    return tuple(found)
