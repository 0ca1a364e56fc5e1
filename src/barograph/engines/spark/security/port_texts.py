"""How findings name ports, and who reaches them."""

from collections.abc import Iterable

from barograph.engines.spark.health import Finding
from barograph.engines.spark.security.ports import ListeningPort
from barograph.engines.spark.security.processes import OwnProcess

_SHOWN = 5  # of a list that can be long


def name_of(process: OwnProcess) -> str:
    return f"ports of {process.role} {process.pid}"


def reach(ports: Iterable[ListeningPort]) -> str:
    return "this machine" if all(p.loopback for p in ports) else "the network"


def places(ports: Iterable[ListeningPort]) -> str:
    return ", ".join(f"{p.address}:{p.port}" for p in ports)


def wide_places(ports: list[ListeningPort]) -> str:
    shown = ", ".join(str(p.port) for p in ports[:_SHOWN]) + (" and more" if len(ports) > _SHOWN else "")
    return f"every interface, {len(ports)} ports ({shown})"


def opened_by_program(process: OwnProcess, port: ListeningPort) -> Finding:
    """It is shown, and does not count."""
    found = f"{places([port])} (opened by the program): open to {reach([port])}, it is not known what it asks for"
    advice = "see what the program opened it for, and whether that asks for anything"
    return Finding(name_of(process), False, found, advice, essential=False)
