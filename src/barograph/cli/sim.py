"""Simulate a scenario under a policy and print the results.

    barograph sim --list
    barograph sim wordcount-regular --policy adaptive
    barograph sim my.toml --policy liu --option theta_pct=10 --seed 3 --format json
    barograph sim recording:largeCluster03
    barograph sim clusters.json/mine

SCENARIO is the name of a scenario that ships (--list), a TOML file, or a recorded cluster: one that ships, or one in a
file that barograph plan can read. docs/simulator.md describes the files, the results, and how large a scenario may be.
The same scenario, policy and seed always give the same trace, byte for byte; its hash is among the results. Policy
``none`` changes nothing during the run.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from barograph.cli.support.options import add_seed, parse_seed
from barograph.cli.support.tables import notes_block, table
from barograph.config.flags import add_flags, config_of
from barograph.config.option import SIM
from barograph.config.policy_options import parse_options
from barograph.control.policy_in_sim import NO_POLICY, rehearse
from barograph.engines.sim import PriorityResult, Result, find, read_calibration, shipped
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.policy.configured import require_policy
from barograph.policy.registry import DEFAULT


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a name, a TOML file or a recorded cluster, see above"
    )
    parser.add_argument("--list", action="store_true", help="list the scenarios that ship")
    add_flags(parser, SIM)
    add_seed(parser, "the simulation")
    parser.add_argument(
        "--grain", metavar="rows|flows", help="simulate single rows or flows (default: as the scenario says)"
    )
    parser.add_argument("--calibration", metavar="FILE", help="constants of the simulator (default: those that ship)")
    parser.add_argument("--trace", metavar="FILE", help="write one line of JSON for each cycle")
    parser.add_argument("--format", default="table", metavar="json|table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    if args.list:
        print("\n".join(table(list(shipped().items()))))
        return 0
    require(args.scenario is not None, "name a SCENARIO; --list lists those that ship")
    require(args.format in ("json", "table"), f"--format must be json or table, not {args.format!r}")
    require(args.grain in (None, "rows", "flows"), f"--grain must be rows or flows, not {args.grain!r}")
    config = config_of(args, SIM)
    require_policy(config, (NO_POLICY,))
    policy = config["policy"] or DEFAULT
    seed = parse_seed(args.seed)
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
            policy,
            seed,
            options=parse_options(config["options"]),
            calibration=calibration,
            grain=args.grain,
            keep=keep,
        )
        wall_s = time.perf_counter() - started
    report = {"policy": policy, **found.as_dict(), "wall_s": round(wall_s, 3)}
    report["times_real_time"] = round(found.simulated_s / wall_s, 1)
    report["notes"] = list(scenario.notes)
    if args.format == "json":
        print(json.dumps(report, indent=2))
    else:
        _table(policy, found, wall_s)
        print("".join(f"{line}\n" for line in notes_block(scenario.notes)), end="")
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
    if len(found.topologies) > 1:
        for t in found.topologies:
            times = f"{_times(t.complete_time_ms)}  late {t.late_rows:,.0f}  stopped {t.stopped_s:.1f} s"
            lines.append((t.name, times))
    print("\n".join(table(lines, indent=2)))
    if found.lost_rows:
        print("rows were lost: this is a bug of the simulator", file=sys.stderr)


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
        return "unknown: no second was smooth"
    return "  ".join(f"by {pct} %: {count} s" for pct, count in seconds.items())


def _times(times: object) -> str:
    return "  ".join(f"{n} {getattr(times, n):,.1f}" for n in ("mean", "p50", "p99", "max"))
