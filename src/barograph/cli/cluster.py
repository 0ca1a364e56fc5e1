"""Start, show and stop a small Spark cluster on this machine.

barograph cluster up --nodes 3 --node-cpu 0.6 --seats 8    three nodes of 0.6 cores with 8 seats each
barograph cluster status                                   the clusters that run
barograph cluster down                                     stop it, and remove what a crash left behind
barograph cluster prepare                                  takes half a minute, once; halves later starts

A node is a Spark worker with a loopback address of its own and a CPU limit. The cluster keeps running after this
command; any Spark application of yours can use it through the master URL that `up` prints, with a file that has the
secret and closes the driver to other users (secret_file in `status --format json`):
spark-submit --master URL --properties-file FILE app.py
"""

import argparse
import json
import sys
from dataclasses import asdict

from barograph.cli.support.tables import table
from barograph.config.flags import add_flags, config_of
from barograph.engines.spark.cluster import detached, runs
from barograph.engines.spark.cluster.embedded import make_archive, unfenced_warning
from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.node_status import ALIVE, state_of, status_of
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.cluster.start_signs import StartFailed
from barograph.engines.spark.security.secret import SECRET_FILE


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="up|status|down|prepare", required=True)
    up = actions.add_parser("up", help="start a cluster")
    add_flags(up, "cluster up")
    up.add_argument("--name", help="name of the cluster (default: cluster)")
    status = actions.add_parser("status", help="show the clusters that run")
    down = actions.add_parser("down", help="stop a cluster and remove what a crash left behind")
    down.add_argument("name", nargs="?", metavar="NAME", help="which cluster, if several run")
    prepare = actions.add_parser("prepare", help="make later starts faster")
    for action in (up, status, down, prepare):
        action.add_argument("--format", choices=("text", "json"), default="text", help="(default %(default)s)")


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
    config = config_of(args, "cluster up")
    settings = ClusterSettings(**config.fields("cluster"))
    try:
        started = detached.up(settings, args.name, config["executor.hung-after"])
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
        "master_state": state_of(found.leaders.get(MASTER)),
        "web": found.web,
        "detached": found.detached,
        "folder": str(found.folder),
        "secret_file": str(found.folder / SECRET_FILE),
        "seats": found.settings.seats,
        "executors": found.settings.executors,
        "memory_mb": found.settings.memory_mb,
        "node_cpu": found.settings.node_cpu,
        "nodes": [asdict(node) for node in status_of(found)],
    }


def _table(described: dict[str, object]) -> str:
    state = described["master_state"]
    trouble = f"  MASTER {str(state).upper()}" if described["master"] and state != ALIVE else ""
    lines = [f"{described['name']}  {described['master'] or 'starting'}  {described['web']}{trouble}"]
    nodes = described["nodes"]
    assert isinstance(nodes, list)
    rows = []
    for node in nodes:
        cpu = "no limit" if node["fence_cpu"] is None else f"{node['fence_cpu']:g} cores"
        pids = " ".join(map(str, node["pids"]))
        rows.append([node["name"], node["address"], node["state"], cpu, pids])
    return "\n".join([*lines, *table(rows, indent=2)])


def _print(args: argparse.Namespace, value: object, text: str) -> int:
    print(json.dumps(value, indent=1) if args.format == "json" else text)
    return 0
