"""The secret of an embedded cluster: made at its start, kept in files that only its owner can read.

Without it any user of the machine could connect to the master and run code as the cluster's owner. It must be on no
command line and in no log: master and workers get it by ``--properties-file``, the worker passes it to executors in
their environment (only their owner can read that), a driver gets it from the file.
"""

import base64
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

SECRET_FILE = "secret.properties"
DAEMONS_FILE = "daemons.properties"
_BYTES = 32
_FILTER = "org.apache.spark.ui.JWSFilter"


def make_secret(folder: Path) -> None:
    """Make a new secret: settings of drivers (``SECRET_FILE``), and of master and workers (``DAEMONS_FILE``)."""
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
    _write(folder / SECRET_FILE, clients)
    _write(folder / DAEMONS_FILE, clients | pages)


def read_secret(folder: Path) -> dict[str, str]:
    """The settings with which a driver may connect; empty for a cluster that has no secret."""
    try:
        lines = (folder / SECRET_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


def _write(file: Path, settings: Mapping[str, str]) -> None:
    # A new file, never one that was there: it might be another user's, or a link to one.
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.writelines(f"{key} {value}\n" for key, value in settings.items())
