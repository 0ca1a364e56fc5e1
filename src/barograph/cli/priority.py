"""List, set and trigger the priorities of running topologies; level 1 is the highest.

    barograph priority list
    barograph priority set TOPOLOGY LEVEL           its level while its trigger is off
    barograph priority trigger TOPOLOGY on|off      to level 1 (or --level N), or back

A change pauses the topology's sources, drains it and resumes it: no row is lost. The command asks the driver that runs
the topology, through the driver's own socket; --driver selects one where several run.
"""

import argparse
import json
from typing import Any

from barograph.cli.support.drivers import is_meant
from barograph.cli.support.tables import table
from barograph.config import default
from barograph.engines.spark.driver.client import RemoteEngine, reachable
from barograph.model import BadInput
from barograph.model.checks import require


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("do", metavar="list|set|trigger", help="what to do")
    parser.add_argument("topology", nargs="?", metavar="TOPOLOGY")
    parser.add_argument("value", nargs="?", metavar="LEVEL|on|off")
    level = default("priority.level")
    parser.add_argument("--level", metavar="N", help=f"level while the trigger is on (default {level})")
    parser.add_argument(
        "--driver", metavar="RUN", help="a driver, by the name of its cluster or application, or by its pid"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    request = request_of(args.do, args.topology, args.value, args.level)
    found: list[dict[str, Any]] = []
    for engine in _drivers(args.driver, args.topology):
        found += engine.ask("priority", request)
        engine.close()
    print(json.dumps(found) if args.format == "json" else _table(found))
    return 0


def request_of(do: str, topology: str | None, value: str | None, level: str | None) -> dict[str, object]:
    """The request for the driver. BadInput for arguments that do not fit together."""
    require(do in ("list", "set", "trigger"), f"there is no action {do!r}; there are list, set and trigger")
    require(level is None or do == "trigger", f"--level belongs to trigger, not to {do}")
    if do == "list":
        require(topology is None and value is None, "list takes no TOPOLOGY")
        return {"do": do}
    require(topology is not None, f"{do} needs a TOPOLOGY")
    if do == "set":
        require(value is not None, "set needs a LEVEL")
        return {"do": do, "topology": topology, "level": _level(value or "")}
    require(value in ("on", "off"), f"trigger needs on or off, not {value!r}")
    request: dict[str, object] = {"do": do, "topology": topology, "on": value == "on"}
    return request if level is None else {**request, "level": _level(level)}


def _level(text: str) -> int:
    require(text.isdecimal() and int(text) >= 1, f"a level is a whole number of at least 1, not {text!r}")
    return int(text)


def _drivers(name: str | None, topology: str | None) -> list[RemoteEngine]:
    """The drivers to ask: the one that is named or runs the topology; for a list, all of them."""
    running_drivers = reachable()
    require(len(running_drivers) > 0, "no driver answers on this machine")
    wanted = [(e, s) for e, s in running_drivers if is_meant(s, name)]
    require(len(wanted) > 0, f"no driver is named {name!r}")
    if topology is None:
        return [engine for engine, _ in wanted]
    running = [engine for engine, s in wanted if topology in {t["name"] for t in s["topologies"]}]
    if len(running) != 1:
        names = sorted({t["name"] for _, s in wanted for t in s["topologies"]})
        several = f"{len(running)} drivers run a topology {topology!r}; choose one with --driver"
        none = f"there is no topology {topology!r}; there are {', '.join(names) or 'none'}"
        raise BadInput(several if running else none)
    return running


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [
        [r["topology"], str(r["level"]), str(r["calm"]), "on" if r["trigger"] else "off", r["phase"]] for r in rows
    ]
    return "\n".join(table([["topology", "level", "without trigger", "trigger", "state"], *cells], right=" >>"))
