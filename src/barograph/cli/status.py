"""Show what runs: topologies, their instances by node, rates, latency, backlog, and restarts.

barograph status                 all your drivers on this machine
barograph status NAME            one, by the name of its cluster or application, or by its process id
barograph status --watch         again every second until Ctrl-C

It asks the drivers through their own sockets and changes nothing that runs. Unknown values are shown as -.
"""

import argparse
import json
import sys
import time
from typing import Any

from barograph.cli.support.drivers import is_meant, name_of
from barograph.config import default
from barograph.engines.spark.driver.client import reachable
from barograph.model import BadInput

STALE_S: float = default("guards.stale")  # an executor reports at least once a second; older figures are marked


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", nargs="?", metavar="RUN", help="which driver (default: all)")
    parser.add_argument("--watch", action="store_true", help="show it again every second")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    while True:
        found = _found(args.which)
        if args.format == "json":
            print(json.dumps(found, indent=None if args.watch else 2), flush=True)
        else:
            clear = "\x1b[2J\x1b[H" if args.watch and sys.stdout.isatty() else ""
            print(clear + ("\n\n".join(table(d) for d in found) or "no driver answers on this machine"), flush=True)
        if not args.watch:
            return 0
        time.sleep(1.0)


def _found(wanted: str | None) -> list[dict[str, Any]]:
    found = []
    for engine, status in reachable():
        engine.close()
        found.append(status)
    if wanted is None:
        return found
    chosen = [d for d in found if is_meant(d, wanted)]
    if not chosen:
        names = ", ".join(sorted({name_of(d) for d in found}))
        others = f"; there are {names}" if names else ": no driver answers on this machine"
        raise BadInput(f"no driver is named {wanted!r}{others}")
    return chosen


def table(status: dict[str, Any]) -> str:
    lines = [f"{status['app']}  {status['master']}  pid {status['pid']}" + ("  FROZEN" if status["frozen"] else "")]
    lines += [f"  policy {c['policy']} {'acts' if c['mode'] == 'act' else 'advises'}" for c in status["controllers"]]
    lines += [f"  LIMITS LIFTED: {status['limits_lifted']}"] if status["limits_lifted"] else []
    for t in status["topologies"]:
        lines.append(
            f"  {t['name']}: {t['doing']}, epoch {t['epoch']}, in {_number(t['in_rows_s'])}/s, "
            f"out {_number(t['out_rows_s'])}/s, backlog {_number(t['backlog_rows'])}, latency ms "
            + _latency(t["latency_ms"], t["latency_record_ms"])
            + _stale(t["age_s"])
        )
        for node in status["nodes"]:
            used = (
                "" if node["cpu_used_pct"] is None else f"  cpu {node['cpu_used_pct']:.0f} of {node['cpu_pct']:.0f} %"
            )
            alive = "" if node["executors"] else "  NO EXECUTOR"
            line = f"    {node['name']:<10} {' '.join(t['by_node'].get(node['name'], [])) or '-'}{used}{alive}"
            lines.append(line + _stale(node["age_s"]) + _held_back(node) + _enforcement(node))
        lines += [
            f"    died in epoch {r['epoch']}: {r['cause']}; down for {r['down_s']:.2f} s, "
            f"{r['rows_replayed']:,} rows read again"
            for r in t["restarts"]
        ]
    return "\n".join(lines)


def _held_back(node: dict[str, Any]) -> str:
    """Instances stay away for a while from a node whose executors die again and again."""
    left_s = node["held_back_s"]
    return "" if left_s is None else f"  HELD BACK: {node['deaths_in_a_row']} deaths in a row, {left_s:.0f} s left"


def _enforcement(node: dict[str, Any]) -> str:
    """Only what differs from what was asked for."""
    because = "; ".join(node["enforces_because"])
    return f"  LIMITS {', '.join(node['enforces'])}: {because}" if because else ""


def _latency(column: dict[str, float] | None, record: dict[str, float] | None) -> str:
    """Of each kind that there is: by a column of the rows, and by record times, which is a bound."""
    known = ((column, "by column"), (record, "by record time"))
    told = [
        f"p50 {found['p50']:.0f} p99 {found['p99']:.0f} max {found['max']:.0f} {kind}"
        for found, kind in known
        if found is not None
    ]
    return ", ".join(told) or "-"


def _stale(age_s: float | None) -> str:
    """Figures are as old as the last report of the executor that they come from."""
    return "" if age_s is None or age_s <= STALE_S else f"  STALE: {age_s:.0f} s old"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
