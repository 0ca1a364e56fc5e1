"""What drivers say that they use: checkpoints, histories, ports. The doctor asks them for it.

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

RPC, BLOCKS, WEB_PAGE, JAVA_GATEWAY = "RPC", "block transfer", "web page", "Java gateway"
USES = "uses"
_ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class KnownPort:
    """A port that Spark or PySpark opened. use: what for. asks: for what, of a program that connects; empty: for
    nothing."""

    port: int
    use: str
    asks: str


@dataclass(frozen=True, slots=True)
class DriverUses:
    """pid: of the driver's Python; jvm_pid: of its JVM. checkpoints and histories: as the driver writes them, with or
    without a scheme."""

    pid: int
    checkpoints: tuple[str, ...]
    histories: tuple[str, ...]
    python_ports: tuple[KnownPort, ...]
    jvm_pid: int
    jvm_ports: tuple[KnownPort, ...]


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
