"""The secret of an embedded cluster: made at its start, kept in files that only its owner can read.

Without it any user of the machine could connect to the master and run code as the cluster's owner. It must be on no
command line and in no log: master and workers get it by ``--properties-file``, the worker passes it to executors in
their environment (only their owner can read that), a driver gets it from the file.
"""

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path

from barograph.engines.spark.security.closed_driver import CLOSED, is_key
from barograph.engines.spark.security.private_files import write_private

SECRET_FILE = "secret.properties"
DAEMONS_FILE = "daemons.properties"
_BYTES = 32
_FILTER = "org.apache.spark.ui.JWSFilter"


def make_secret(folder: Path) -> None:
    """Make a new secret: settings of drivers (``SECRET_FILE``), and of master and workers (``DAEMONS_FILE``).

    Those of drivers also close the driver itself: the file is all that a program needs to use the cluster."""
    clients = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(_BYTES),
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.saslFallback": "false",
    }
    # The web pages show logs and can end applications, and Spark cannot switch them off: they ask for a signed token.
    # Its key is another one, because it is no use for anything else.
    key = base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()
    pages = {"spark.ui.filters": _FILTER, f"spark.{_FILTER}.param.secretKey": key, "spark.ui.killEnabled": "false"}
    write_private(folder / SECRET_FILE, _lines(clients | CLOSED))
    write_private(folder / DAEMONS_FILE, _lines(clients | pages))


def read_secret(folder: Path) -> dict[str, str]:
    """The settings with which a driver may connect, and no other; empty for a cluster that has no secret."""
    try:
        lines = (folder / SECRET_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    found = {key: value for key, _, value in (line.partition(" ") for line in lines)}
    return {key: value for key, value in found.items() if is_key(key)}


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{key} {value}\n" for key, value in settings.items())
