"""Finds the driver that a command is about, by what its user calls it."""

from pathlib import Path
from typing import Any

from barograph.engines.spark.driver.client import RemoteEngine, reachable
from barograph.model import BadInput

HELP = "a driver: the name of its cluster or application, its process id or its socket (default: the only one)"


def find_driver(name: str | None) -> tuple[RemoteEngine, dict[str, Any]]:
    """The driver, with its status. Raises BadInput where none or several are meant."""
    path = None if name is None else Path(name)
    if path is not None and path.is_socket():
        found = reachable([path])
        if not found:
            where = "'barograph status' shows those that run"
            raise BadInput(f"no driver answers at {name}: it has ended or hangs; {where}")
        return found[0]
    running = reachable()
    chosen = [(e, s) for e, s in running if is_meant(s, name)]
    if len(chosen) != 1:
        for engine, _ in running:
            engine.close()
        raise BadInput(_not_one(name, [s for _, s in running], [s for _, s in chosen]))
    for engine, _ in running:
        if engine is not chosen[0][0]:
            engine.close()
    return chosen[0]


def is_meant(status: dict[str, Any], name: str | None) -> bool:
    return name is None or name in (status["run"], status["app"], str(status["pid"]))


def name_of(status: dict[str, Any]) -> str:
    return str(status["run"] or status["app"])


def _not_one(name: str | None, running: list[dict[str, Any]], chosen: list[dict[str, Any]]) -> str:
    if not running:
        return "no driver answers on this machine: start a query with barograph.start or 'barograph run' first"
    listed = ", ".join(f"{name_of(s)} (process {s['pid']})" for s in chosen or running)
    if chosen:
        return f"{len(chosen)} drivers {'run' if name is None else f'are named {name!r}'}: name one of {listed}"
    return f"no driver is named {name!r}: name one of {listed}"
