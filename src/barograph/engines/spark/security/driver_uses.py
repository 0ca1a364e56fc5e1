"""What drivers say that they use: checkpoints, histories, ports of their Python. The doctor asks them for it.

By their sockets, which only this user can open; a driver that does not answer is left out.
"""

import contextlib
from dataclasses import dataclass

from barograph.engines.spark.driver.client import DriverFailed, RemoteEngine, sockets
from barograph.engines.spark.driver.framing import Closed
from barograph.model import BadInput
from barograph.model.codec import from_json

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
    """pid: of the driver's Python. checkpoints and histories: as the driver writes them, with or without a scheme."""

    pid: int
    checkpoints: tuple[str, ...]
    histories: tuple[str, ...]
    python_ports: tuple[PythonPort, ...]


def asked_drivers() -> tuple[DriverUses, ...]:
    """Of every driver of this user that answers."""
    found = []
    for path in sockets():
        driver = RemoteEngine(path)
        with contextlib.closing(driver), contextlib.suppress(Closed, DriverFailed, BadInput):
            found.append(from_json(DriverUses, driver.ask(USES, timeout_s=_ANSWER_S)))
    return tuple(found)
