"""Simulate a scenario under a policy and print what it came to.

    barograph sim --list
    barograph sim wordcount-regular --policy adaptive
    barograph sim my.toml --policy liu --option theta_pct=10 --seed 3 --format json
    barograph sim recording:largeCluster03
    barograph sim clusters.json/mine

SCENARIO is the name of one that ships (--list), a TOML file, or a recorded cluster: one that ships, or one of a file as
barograph plan reads it. docs/simulator.md describes the files, the numbers, and how large a scenario may be.
The same scenario, policy and seed give the same trace, to the byte; its hash is in the result. Policy ``none`` leaves
everything as the scenario starts.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from barograph.cli.notes import block
from barograph.cli.options import parse_options
from barograph.engines.sim import PriorityResult, Result, find, read_calibration, shipped
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.policies import DEFAULT
from barograph.rehearsal import rehearse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO")
    parser.add_argument("--list", action="store_true", help="name the scenarios that ship")
    parser.add_argument("--policy", default=DEFAULT, metavar="P", help=f"default {DEFAULT}")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the policy")
    parser.add_argument("--seed", default="0", metavar="N")
    parser.add_argument("--grain", metavar="rows|flows", help="instead of the scenario's own")
    parser.add_argument("--calibration", metavar="FILE", help="other constants than those that ship")
    parser.add_argument("--trace", metavar="FILE", help="write one line of JSON for each cycle")
    parser.add_argument("--format", default="table", metavar="json|table")


def run(args: argparse.Namespace) -> int:
    if args.list:
        for name, title in shipped().items():
            print(f"{name:<34} {title}")
        return 0
    require(args.scenario is not None, "name a SCENARIO; --list names those that ship")
    require(args.format in ("json", "table"), f"--format must be json or table, not {args.format!r}")
    require(args.grain in (None, "rows", "flows"), f"--grain must be rows or flows, not {args.grain!r}")
    require(args.seed.isdecimal(), f"--seed must be a whole number of at least 0, not {args.seed!r}")
    calibration = read_calibration(Path(args.calibration) if args.calibration else None)
    scenario = find(args.scenario)
    with ExitStack() as stack:
        keep: Callable[[str], None] | None = None
        if args.trace:
            try:
                file = stack.enter_context(Path(args.trace).open("w", encoding="utf-8"))
            except OSError as error:
                raise BadInput(f"the trace {args.trace!r} cannot be written: {error.strerror}") from None
            keep = lambda line: print(line, file=file)  # noqa: E731
        started = time.perf_counter()
        found = rehearse(
            scenario,
            args.policy,
            int(args.seed),
            options=parse_options(args.option),
            calibration=calibration,
            grain=args.grain,
            keep=keep,
        )
        wall_s = time.perf_counter() - started
    report = {"policy": args.policy, **found.as_dict(), "wall_s": round(wall_s, 3)}
    report["times_real_time"] = round(found.simulated_s / wall_s, 1)
    report["notes"] = list(scenario.notes)
    if args.format == "json":
        print(json.dumps(report, indent=2))
    else:
        _table(args.policy, found, wall_s)
        print("".join(f"{line}\n" for line in block(scenario.notes)), end="")
    return 0


def _table(policy: str, found: Result, wall_s: float) -> None:
    state = "" if found.calibrated else "  (uncalibrated)"
    speed = found.simulated_s / wall_s
    print(f"{found.scenario} under {policy}, seed {found.seed}, {found.grain}{state}")
    lines = [
        ("complete time, ms", _times(found.complete_time_ms)),
        ("  from read, ms", _times(found.from_read_ms)),
        ("rows completed", f"{found.completed_rows:,.0f}  ({found.throughput_rows_per_s:,.1f}/s)"),
        ("late rows", f"{found.late_rows:,.0f}"),
        ("lost rows", f"{found.lost_rows:,.0f}"),
        ("replayed rows", f"{found.replayed_rows:,.0f}"),
        *([("failed rows", f"{found.failed_rows:,.0f}")] if found.failed_rows else []),
        ("CPU reserved, s", f"{found.cpu_reserved_s:,.0f} (limit {found.cpu_limit_s:,.0f})"),
        ("CPU used, s", f"{found.cpu_used_s:,.0f}"),
        ("nodes", f"mean {found.nodes_mean:.2f}  min {found.nodes_min}  max {found.nodes_max}"),
        ("moves", f"{found.moves} in {found.reconfigurations} reconfigurations"),
        *_priority(found.priority),
        ("decisions", f"{found.decisions}, {found.refused} refused"),
        ("simulated", f"{found.simulated_s:,.0f} s in {wall_s:.1f} s, {speed:,.0f} times real time"),
        ("trace", found.trace_sha256[:16]),
    ]
    if len(found.topologies) == 1:
        lines.insert(3, ("below stable", _degraded(found.topologies[0].degraded_s)))
    for name, value in lines:
        print(f"  {name:<18} {value}")
    if len(found.topologies) > 1:
        for t in found.topologies:
            print(f"  {t.name:<18} {_times(t.complete_time_ms)}  late {t.late_rows:,.0f}  stopped {t.stopped_s:.1f} s")
    if found.lost_rows:
        print("rows were lost: that is a fault of the simulator", file=sys.stderr)


def _priority(found: PriorityResult | None) -> list[tuple[str, str]]:
    """Chakraborty's three figures, where a topology has a trigger."""
    if found is None:
        return []
    t_t = ", ".join(f"level {level} {seconds:,.3f}" for level, seconds in found.row_time_s.items())
    changes = f"{len(found.overheads)} changes, mean {found.overhead_mean_s:.2f}"
    t_e = [] if found.event_latency_s is None else [("T_E, s", f"{found.event_latency_s:,.2f}")]
    return [*t_e, ("T_T, s", t_t), ("O, s", changes)]


def _degraded(seconds: Mapping[int, int] | None) -> str:
    if seconds is None:
        return "unknown: the output was never undisturbed"
    return "  ".join(f"by {pct} %: {count} s" for pct, count in seconds.items())


def _times(times: object) -> str:
    return "  ".join(f"{n} {getattr(times, n):,.1f}" for n in ("mean", "p50", "p99", "max"))
