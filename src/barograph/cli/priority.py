"""Priorities of running topologies: 1 is highest. Changing one pauses its sources, drains it, and resumes it: no row is
lost.

    barograph priority list
    barograph priority set TOPOLOGY LEVEL           its level when no trigger is on
    barograph priority trigger TOPOLOGY on|off      level 1 (or --level N) now, or its old level again

It asks the driver that runs the topology, over its own socket; --driver names one where several run.
"""

import argparse
import json
from typing import Any

from barograph.engines.spark.client import RemoteEngine, reachable
from barograph.model import BadInput
from barograph.model.checks import require


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("do", metavar="list|set|trigger")
    parser.add_argument("topology", nargs="?", metavar="TOPOLOGY")
    parser.add_argument("value", nargs="?", metavar="LEVEL|on|off")
    parser.add_argument("--level", metavar="N", help="while the trigger is on (default 1)")
    parser.add_argument("--driver", metavar="RUN", help="by the name of its cluster, of its application, or its pid")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(args: argparse.Namespace) -> int:
    request = request_of(args.do, args.topology, args.value, args.level)
    found: list[dict[str, Any]] = []
    for engine in _drivers(args.driver, args.topology):
        found += engine.ask("priority", request)
        engine.close()
    print(json.dumps(found) if args.format == "json" else _table(found))
    return 0


def request_of(do: str, topology: str | None, value: str | None, level: str | None) -> dict[str, object]:
    """What is sent, or a clear refusal."""
    require(do in ("list", "set", "trigger"), f"there is no {do!r}; there are list, set and trigger")
    require(level is None or do == "trigger", f"--level belongs to trigger, not to {do}")
    if do == "list":
        require(topology is None and value is None, "list takes no topology")
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
    """Who is asked: the one that is named or runs the topology; for a list, everybody."""
    everyone = reachable()
    require(len(everyone) > 0, "nothing runs")
    wanted = [(e, s) for e, s in everyone if name is None or name in (s["run"], s["app"], str(s["pid"]))]
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
    lines = [f"{'topology':<24} {'level':>5}  {'calm':>4}  trigger  doing"]
    for r in rows:
        on = "on" if r["trigger"] else "off"
        lines.append(f"{r['topology']:<24} {r['level']:>5}  {r['calm']:>4}  {on:<7}  {r['phase']}")
    return "\n".join(lines)
