"""Run a workload on a real Spark cluster under a load, act on it while it runs, and judge the result exactly.

Without --master a small cluster is started on this machine and ended with the run. The load is in lines a second:

  constant 2000                              the same all the time
  steps 0s=500 60s=2500 120s=500             each rate holds until the next point
  ramp 0s=500 60s=2500                       straight between the points, the last one holds
  onoff high=80 low=40 share=0.5 period=60s  high for that share of each period
  random 1..25 x200 every 10s seed=7         a whole number drawn anew, times 200
  batches rows=640 every=60s count=80 within=1s  so many batches, one each period, sent within that time
  trace FILE                                 lines of seconds,rate
  constant 80 noise 0.05 every 5s seed=7     any but a trace, with rates off by up to 5 %, every 5 s by another part

Actions, any number of times; those for one second share one cut:

  --at '20:move count/1=node-2'  --at '30:scale split=4'  --at '40:cut'
  --at '20:kill executor@node-2' --at '30:kill node@node-2' --at '40:start node@node-2'  --at '50:kill driver'

What is killed (with -9) comes back: the query from its checkpoint, an executor, a node unless a later action starts it,
the driver.

Policy 'spark' is Spark alone: the same query on the same cluster without the plug-in. 'fixed' takes --share,
'fixed-peak', 'fixed-mean' and 'fixed-equal' take --like. A run begins with the policy's own placement, and the policy
moves in its paper's own way.

At --seconds the source closes, what is left is drained and committed, and every word's count and checksum are read
back from the checkpoint and compared with what the source made. Exit code 0 when every row was counted once and
every action was done, 1 when not, 2 for input that cannot be.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barograph.cli.options import parse_options
from barograph.model import BadInput, Load, MigrationMode
from barograph.model.checks import require
from barograph.model.load import parse_duration_s
from barograph.policies import named, options_of

if TYPE_CHECKING:
    from barograph.experiments.steering import Steering

HELP = "run a workload on Spark and judge it exactly"
WORKLOADS = ("wordcount",)
PLAIN = "spark"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", help=f"one of: {', '.join(WORKLOADS)}")
    parser.add_argument("--nodes", type=int, default=3, help="nodes to start (default %(default)s)")
    parser.add_argument("--node-cpu", default="0.6", help="cores of all nodes, or of each: 0.6,0.3,0.9 (%(default)s)")
    parser.add_argument("--seats", type=int, help="instances each worker can hold (default 8, split over a node's two)")
    parser.add_argument("--executors", type=int, help="workers on each node (default: as the policy wants, mostly 1)")
    parser.add_argument("--port", type=int, help="the master's port (default: a free one)")
    parser.add_argument("--seconds", type=float, default=60.0, help="when the source closes (default %(default)s)")
    parser.add_argument("--load", default="constant 1000", help="lines a second, see above (default '%(default)s')")
    parser.add_argument("--parallelism", default="", help="for example source=2,split=2,count=3, which is the default")
    parser.add_argument(
        "--toil", default="", metavar="OPERATOR=MICROSECONDS,..", help="CPU each row costs it besides: split, count"
    )
    parser.add_argument("--epoch", default="60s", help="an epoch's length if nobody cuts it (default %(default)s)")
    parser.add_argument("--checkpoint", type=Path, help="an empty folder that is kept (default: a temporary one)")
    parser.add_argument("--master", help="spark://HOST:PORT of a cluster that runs, see 'barograph cluster'")
    parser.add_argument("--at", action="append", default=[], metavar="SECONDS:ACTION", help="act while it runs")
    parser.add_argument("--drain", default="120s", help="how long draining may take (default %(default)s)")
    parser.add_argument("--timeout", default="30s", help="a row that takes longer is late (default %(default)s)")
    parser.add_argument(
        "--in-flight", default="0.2s", help="how long what waits before an instance may take it; 0s: any (%(default)s)"
    )
    parser.add_argument("--policy", metavar="P", help="steer the run, see 'barograph policies' (default: leave it be)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the policy")
    parser.add_argument("--theta", type=float, metavar="PER_CENT", help="granularity of the policy's CPU shares")
    ways = ", ".join(MigrationMode)
    parser.add_argument("--migration", metavar="M", help=f"how changes are made: {ways} (default: the policy's own)")
    parser.add_argument("--share", default="", metavar="OPERATOR=PER_CENT,..", help="of policy fixed: of each instance")
    parser.add_argument("--like", type=Path, metavar="FILE", help="of fixed-peak, -mean and -equal: another run's JSON")
    parser.add_argument(
        "--recovery",
        default="30s",
        help="what epochs grow and shrink for: back in time after a death; off: --epoch holds",
    )
    parser.add_argument("--cycle", default="2s", help="how often the policy decides (default %(default)s)")
    parser.add_argument(
        "--mode", choices=("act", "advise"), default="act", help="advise: decide, record, change nothing"
    )
    parser.add_argument("--enforce", choices=("on", "off"), default="on", help="hold instances to their CPU shares")
    parser.add_argument("--history", type=Path, help="a folder for what was seen and decided (default: not kept)")
    parser.add_argument(
        "--release-after", default="60s", help="let go of a node that was idle for so long, or never (%(default)s)"
    )
    parser.add_argument("--spare-nodes", type=int, default=1, help="idle nodes that are kept (default %(default)s)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="of the result")


def run(args: argparse.Namespace) -> int:
    if args.workload not in WORKLOADS:
        raise BadInput(f"there is no workload {args.workload!r}; there is {', '.join(WORKLOADS)}")
    load = Load.parse(args.load)
    epoch_s, drain_s = parse_duration_s(args.epoch), parse_duration_s(args.drain)
    timeout_s, in_flight_s = parse_duration_s(args.timeout), parse_duration_s(args.in_flight)

    # Spark is imported only now: bad words above are told at once.
    from barograph.engines.spark.settings import ClusterSettings, parse_node_cpu
    from barograph.experiments.actions import parse_action
    from barograph.experiments.live import Table
    from barograph.experiments.relay import run_it
    from barograph.experiments.run_settings import RunSettings
    from barograph.experiments.warm import RunFailed
    from barograph.experiments.workers import workers_for
    from barograph.workloads import wordcount

    node_cpu = parse_node_cpu(args.node_cpu)
    parallelism = {**wordcount.DEFAULT_PARALLELISM, **parse_counts("--parallelism", "INSTANCES", args.parallelism)}
    steering = _steering(args, parallelism)
    policy = None if steering is None else steering.decider()
    workers = workers_for(policy, wordcount.topology(parallelism), args.executors, args.seats)
    settings = RunSettings(
        load=load,
        seconds=args.seconds,
        parallelism=parallelism,
        epoch_s=epoch_s,
        cluster=ClusterSettings(
            args.nodes, node_cpu, workers.seats, workers.executors, workers.memory_mb, port=args.port
        ),
        master=args.master,
        checkpoint=args.checkpoint,
        actions=tuple(parse_action(a, wordcount.NAME) for a in args.at),
        drain_s=drain_s,
        timeout_s=timeout_s,
        in_flight_s=in_flight_s,
        steering=steering,
        toil_us=parse_counts("--toil", "MICROSECONDS", args.toil),
        plain=args.policy == PLAIN,
        migration=_migration(args.migration),
    )
    table = Table(sys.stderr)
    try:
        report = run_it(settings, table.show, table.say)
    except RunFailed as error:
        print(f"barograph run: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report.to_json(), indent=2) if args.format == "json" else report.summary())
    return 0 if report.ok else 1


def _migration(text: str | None) -> MigrationMode:
    known = ", ".join(MigrationMode)
    require(text is None or text in set(MigrationMode), f"--migration must be one of {known}, not {text!r}")
    return MigrationMode.CUT if text is None else MigrationMode(text)


def _steering(args: argparse.Namespace, parallelism: Mapping[str, int]) -> "Steering | None":
    """Who steers, as the arguments say; nobody without --policy."""
    from barograph.experiments.like import fixed_shares, parse_shares
    from barograph.experiments.steering import Steering
    from barograph.workloads.wordcount import NAME

    options = parse_options(args.option)
    if args.policy in (None, PLAIN):
        given = {"--option": options, "--theta": args.theta, "--share": args.share}
        for flag in (name for name, value in {**given, "--like": args.like}.items() if value not in (None, "", {})):
            nobody = "is of a policy: say which with --policy" if args.policy is None else f"is not for policy {PLAIN}"
            raise BadInput(f"{flag} {nobody}")
        return None
    if args.theta is not None:
        known = options_of(named(args.policy))
        require("theta_pct" in known, f"policy {args.policy} has no theta: its CPU shares are not in steps")
        options["theta_pct"] = args.theta
    if args.migration is not None:
        require("mode" not in options, "--migration and --option mode say the same: give one of them")
        options["mode"] = args.migration
    shares = fixed_shares(args.policy, parse_shares(args.share), args.like, parallelism)
    return Steering(
        args.policy, parse_duration_s(args.cycle), args.mode, args.enforce == "on", options, args.history,
        {f"{NAME}/{operator}": share for operator, share in shares.items()},
        release_after_s=None if args.release_after == "never" else parse_duration_s(args.release_after),
        spare_nodes=args.spare_nodes,
        recovery_s=None if args.recovery == "off" else parse_duration_s(args.recovery),
    )  # fmt: skip


def parse_counts(flag: str, unit: str, text: str) -> dict[str, int]:
    """``source=2,split=4`` as a mapping."""
    found: dict[str, int] = {}
    for piece in filter(None, text.split(",")):
        operator, equals, count = piece.partition("=")
        if not equals or not count.isdecimal() or int(count) < 1:
            raise BadInput(f"{flag} {text!r}: {piece!r} is not OPERATOR={unit}")
        if operator in found:
            raise BadInput(f"{flag} {text!r} names {operator} twice")
        found[operator] = int(count)
    return found
