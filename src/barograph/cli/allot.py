"""Compute how SPS or DPS shares out too few nodes.

    barograph allot --scheduler sps --nodes 16 --desired 8,8,4,4 --min 4,4,2,2 --level 1,1,2,2
    {"given": [6, 6, 2, 2], "starved": [], "idle": 0}

Topologies are listed by position: desired and minimum nodes and level (1 is highest), separated by commas. The result
is one line of JSON: given, the nodes of each topology; starved, the positions (from 0) of topologies that get none;
idle, nodes that no topology gets. Both schedulers are Chakraborty's: sps is static and needs --min; dps is dynamic and
ignores minimums.
"""

import argparse
import json
import re
import sys

from barograph.allot.counts import dps, sps
from barograph.model import BadInput
from barograph.model.checks import require, require_whole


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scheduler", required=True, metavar="sps|dps", help="which scheduler")
    parser.add_argument("--nodes", required=True, metavar="N", help="number of nodes in the cluster")
    parser.add_argument("--desired", required=True, metavar="a,b,..", help="nodes that each topology wants")
    parser.add_argument(
        "--min", metavar="a,b,..", dest="minimum", help="fewest nodes that each topology can run on (sps)"
    )
    parser.add_argument(
        "--level", required=True, metavar="a,b,..", help="priority level of each topology, 1 is highest"
    )


def run(args: argparse.Namespace) -> int:
    require(args.scheduler in ("sps", "dps"), f"--scheduler must be sps or dps, not {args.scheduler!r}")
    nodes = _whole("--nodes", args.nodes)
    desired, level = _list("--desired", args.desired), _list("--level", args.level)
    minimum = None if args.minimum is None else _list("--min", args.minimum)
    if args.scheduler == "dps":
        _same_length(desired, minimum)
        found = dps(nodes, desired, level)
    else:
        require(minimum is not None, "--scheduler sps needs --min, the fewest nodes that each topology can run on")
        found = sps(nodes, desired, minimum or [], level)
        if nodes < (needed := sum(minimum or [])):
            short = f"the minimums need {needed} nodes and there are {nodes}"
            print(f"warning: {short}; starved: {list(found.starved)}, idle: {found.idle}", file=sys.stderr)
    print(json.dumps({"given": list(found.given), "starved": list(found.starved), "idle": found.idle}))
    return 0


def _same_length(desired: list[int], minimum: list[int] | None) -> None:
    """DPS ignores minimums, but a minimum that is impossible is still a mistake."""
    if minimum is None:
        return
    require(len(minimum) == len(desired), f"there are {len(desired)} desired numbers and {len(minimum)} minimums")
    for i, (least, most) in enumerate(zip(minimum, desired, strict=True)):
        require_whole(f"minimum of topology {i}", least)
        require(least <= most, f"minimum {least} of topology {i} is above its desired {most}")


def _list(option: str, text: str) -> list[int]:
    return [_whole(option, part) for part in text.split(",")]


def _whole(option: str, text: str) -> int:
    if re.fullmatch(r"\s*-?[0-9]+\s*", text) is None:
        raise BadInput(f"{option} takes whole numbers, not {text!r}")
    return int(text)
