"""A token for PySpark's port for calls from Java, which foreachBatch and listeners in Python open.

Without it every user of the machine can call these functions. Py4J can ask for a token there, and Spark's JVM begins
with one, but the client that Py4J makes for the real port does not take it over (``PythonClient.copyWith``).
"""

import functools
import logging
import secrets
import threading
from typing import Any

from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import java_gateway

log = logging.getLogger(__name__)

_BYTES = 32
_KEPT_S = 30  # Py4J's own: how long its client keeps a connection
_lock = threading.Lock()


def guard_callbacks() -> None:
    """From here on PySpark opens that port with a token. A port that is open already stays as it is."""
    plain: Any = java_gateway.ensure_callback_server_started
    if getattr(plain, "guards", False):
        return

    @functools.wraps(plain)
    def guarded(gateway: Any) -> None:
        with _lock:
            parameters = gateway.callback_server_parameters
            running = vars(gateway).get("_callback_server") is not None
            # Without a thread for each of Java's (PYSPARK_PIN_THREAD=false) there is a token anyway.
            if running or not isinstance(gateway, ClientServer):
                plain(gateway)
                return
            # Another one than that of the gateway: Java says it to whatever listens on this port.
            token = secrets.token_hex(_BYTES)
            parameters.auth_token = token
            try:
                plain(gateway)
                _tell_java(gateway, token)
            except Py4JError as error:
                parameters.auth_token = None  # read for each connection: calls are possible, as without us
                if vars(gateway).get("_callback_server") is None:
                    raise
                log.warning("PySpark's port for calls from Java has no token: %s; see barograph doctor", error)

    guarded.guards = True  # type: ignore[attr-defined]
    java_gateway.ensure_callback_server_started = guarded


def _tell_java(gateway: Any, token: str) -> None:
    """Its client for calls of Python gets the token."""
    java = gateway.jvm.java
    server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    of_java = server.getGateway()
    present = of_java.getCallbackClient()
    client = gateway.jvm.py4j.PythonClient(
        of_java, None, present.getPort(), present.getAddress(), _KEPT_S, java.util.concurrent.TimeUnit.SECONDS,
        gateway.jvm.javax.net.SocketFactory.getDefault(), server, True, 0, token,
    )  # fmt: skip
    field = of_java.getClass().getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(of_java, client)
    present.shutdown()
