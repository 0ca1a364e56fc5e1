"""What a driver uses that cannot be told from outside, for the doctor: checkpoints, histories, its ports.

Reads only.
"""

import logging
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.query.checkpoint import checkpoint_of
from barograph.engines.spark.security.driver_uses import BLOCKS, JAVA_GATEWAY, RPC, WEB_PAGE, DriverUses, KnownPort

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
        int(jvm.java.lang.ProcessHandle.current().pid()), jvm_ports(spark),
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


def python_ports(context: SparkContext) -> tuple[KnownPort, ...]:
    """Those that PySpark opens: for accumulators, and for calls from the JVM (foreachBatch, listeners in Python)."""
    found = []
    accumulators = getattr(context, "_accumulatorServer", None)
    if accumulators is not None and isinstance(accumulators.server_address, tuple):  # else a Unix socket
        found.append(KnownPort(accumulators.server_address[1], "accumulators", _token(accumulators)))
    gateway: Any = context._gateway
    # An attribute that the gateway does not have would be looked up in the JVM.
    calls = None if gateway is None else vars(gateway).get("_callback_server")
    if calls is not None:
        port = calls.server_socket.getsockname()[1]
        found.append(KnownPort(port, "calls from Java", _token(gateway.callback_server_parameters)))
    return tuple(found)


def _token(has: Any) -> str:
    return "a token" if has.auth_token else ""


def jvm_ports(spark: SparkSession) -> tuple[KnownPort, ...]:
    """Those that Spark itself opens in the driver, but for the streaming shuffle's, which are new in each epoch."""
    context = spark.sparkContext
    settings = dict(context.getConf().getAll())
    secret = "a secret" if settings.get("spark.authenticate", "").strip().lower() == "true" else ""
    found = [
        KnownPort(int(settings["spark.driver.port"]), RPC, secret),
        KnownPort(Bridge(spark).block_port(), BLOCKS, secret),
    ]
    page = urlsplit(context.uiWebUrl or "").port
    if page is not None:
        found.append(KnownPort(page, WEB_PAGE, "a filter" if settings.get("spark.ui.filters", "").strip() else ""))
    gateway = context._gateway
    if gateway is not None:
        parameters = gateway.gateway_parameters
        found.append(KnownPort(int(parameters.port), JAVA_GATEWAY, _token(parameters)))
    return tuple(found)
