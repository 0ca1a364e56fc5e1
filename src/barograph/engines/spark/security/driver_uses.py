"""What drivers say that they use: checkpoints, histories, ports of their Python, a secret. The doctor asks them for it.

By their sockets, which only this user can open. A driver that has ended is left out; one that answers nothing of use is
left out with a warning.
"""

import contextlib
import logging
from dataclasses import dataclass

from barograph.engines.spark.driver.client import DriverFailed, RemoteEngine, sockets
from barograph.engines.spark.driver.framing import Closed, TimedOut
from barograph.model import BadInput
from barograph.model.codec import from_json

log = logging.getLogger(__name__)

USES = "uses"
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class PythonPort:
    """A port that PySpark opened. use: what for. token: whether it asks for one."""

    port: int
    use: str
    token: bool


@dataclass(frozen=True, slots=True)
class DriverUses:
    """pid: of the driver's Python. checkpoints and histories: as the driver writes them, with or without a scheme.
    jvm: its process. secret: whether the ports of that ask for one."""

    pid: int
    checkpoints: tuple[str, ...]
    histories: tuple[str, ...]
    python_ports: tuple[PythonPort, ...]
    jvm: int
    secret: bool


def asked_drivers() -> tuple[DriverUses, ...]:
    """Of every driver of this user that answers."""
    found = []
    for path in sockets():
        with contextlib.closing(RemoteEngine(path)) as driver:
            try:
                found.append(from_json(DriverUses, driver.ask(USES, timeout_s=_ANSWER_S)))
            except (TimedOut, DriverFailed, BadInput) as error:
                log.warning(
                    "the driver at %s did not say what it uses: %s; its checkpoints and histories are not looked at",
                    path, error,
                )  # fmt: skip
            except Closed:
                continue  # it has ended
    return tuple(found)
