"""Start, show and end a small Spark cluster on this machine.

barograph cluster up --nodes 3 --node-cpu 0.6 --seats 8    three nodes of 0.6 cores with room for 8 instances each
barograph cluster status                                   what is up
barograph cluster down                                     end it, and clear what a crash left
barograph cluster prepare                                  once, half a minute: every later start takes half the time

A node is a Spark worker with a loopback address of its own and a fence around its CPU. The cluster goes on after this
command; any Spark application reaches it through the master URL that `up` prints.
"""

import argparse
import json
import sys

from barograph.engines.spark import detached, runs
from barograph.engines.spark.embedded import StartFailed, make_archive, unfenced_warning
from barograph.engines.spark.nodes import status_of
from barograph.engines.spark.runs import Run
from barograph.engines.spark.settings import ClusterSettings, parse_node_cpu


def configure(parser: argparse.ArgumentParser) -> None:
    default = ClusterSettings()
    actions = parser.add_subparsers(dest="action", metavar="up|status|down|prepare", required=True)
    up = actions.add_parser("up", help="start a cluster")
    up.add_argument("--nodes", type=int, default=default.nodes, help="how many (default %(default)s)")
    up.add_argument("--node-cpu", metavar="CORES", help="of all nodes, or of each: 0.6,0.3,0.9 (default: no limit)")
    up.add_argument("--seats", type=int, default=default.seats, help="of each executor (default %(default)s)")
    up.add_argument("--executors", type=int, default=default.executors, help="on each node (default %(default)s)")
    up.add_argument(
        "--memory", type=int, metavar="MB", default=default.memory_mb, help="of each executor (default %(default)s)"
    )
    up.add_argument("--port", type=int, help="of the master (default: a free one)")
    up.add_argument("--name", help="to tell several clusters apart (default: cluster)")
    status = actions.add_parser("status", help="show what is up")
    down = actions.add_parser("down", help="end a cluster and clear what a crash left")
    down.add_argument("name", nargs="?", metavar="NAME", help="which one, if there are several")
    prepare = actions.add_parser("prepare", help="make every later start faster")
    for action in (up, status, down, prepare):
        action.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    if args.action == "up":
        return _up(args)
    if args.action == "down":
        ended = detached.down(args.name)
        return _print(args, {"ended": ended}, "\n".join(f"ended {name}" for name in ended) or "nothing was up")
    if args.action == "prepare":
        made = make_archive()
        return _print(args, {"prepared": made}, "prepared" if made else "this Java cannot be prepared")
    found = [_described(r) for r in runs.live_runs()]
    return _print(args, found, "\n".join(_table(d) for d in found) or "no cluster is up")


def _up(args: argparse.Namespace) -> int:
    node_cpu = None if args.node_cpu is None else parse_node_cpu(args.node_cpu)
    settings = ClusterSettings(args.nodes, node_cpu, args.seats, args.executors, args.memory, args.port)
    try:
        started = detached.up(settings, args.name)
    except StartFailed as error:
        print(f"barograph cluster: {error}", file=sys.stderr)
        return 1
    if started.unfenced_because and settings.node_cpu is not None:
        print(f"warning: {unfenced_warning(started)}", file=sys.stderr)
    return _print(args, _described(started), started.master)


def _described(found: Run) -> dict[str, object]:
    return {
        "name": found.name,
        "master": found.master,
        "web": found.web,
        "detached": found.detached,
        "folder": str(found.folder),
        "seats": found.settings.seats,
        "executors": found.settings.executors,
        "memory_mb": found.settings.memory_mb,
        "node_cpu": found.settings.node_cpu,
        "nodes": [
            {"name": n.name, "address": n.address, "alive": n.alive, "fence_cpu": n.fence_cpu, "pids": n.pids}
            for n in status_of(found)
        ],
    }


def _table(described: dict[str, object]) -> str:
    lines = [f"{described['name']}  {described['master'] or 'starting'}  {described['web']}"]
    nodes = described["nodes"]
    assert isinstance(nodes, list)
    for node in nodes:
        cpu = "no limit" if node["fence_cpu"] is None else f"{node['fence_cpu']:g} cores"
        state = "alive" if node["alive"] else "dead"
        pids = " ".join(map(str, node["pids"]))
        lines.append(f"  {node['name']:<10} {node['address']:<12} {state:<6} {cpu:<12} {pids}".rstrip())
    return "\n".join(lines)


def _print(args: argparse.Namespace, value: object, text: str) -> int:
    print(json.dumps(value, indent=1) if args.format == "json" else text)
    return 0
