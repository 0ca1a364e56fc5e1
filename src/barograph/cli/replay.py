"""Simulate another policy over a recorded history and show what would have differed.

    barograph replay DIR --policy liu
    barograph replay DIR --policy adaptive --format json

The history gives the nodes, the topologies, the CPU cost of rows and the load. It is simulated twice: under the policy
it was recorded with, which shows how far the simulator is from reality, and under --policy. The column "recorded" sums
the cycles as they were observed: rows that were read again after a failure count twice. JSON has recorded, simulated
and replayed, each with its policy, its sums, and its decisions with at_s, what and shares. mean_ms is the latency by a
column of the rows, record_mean_ms by record times, which a simulation does not have.
"""

import argparse
import json
import logging
from collections.abc import Sequence
from typing import Any

from barograph.cli.support.options import add_seed, parse_seed
from barograph.cli.support.tables import table
from barograph.config.flags import add_flags, config_of
from barograph.config.option import REPLAY
from barograph.control.policy_in_sim import NO_POLICY
from barograph.control.replay import Told, decisions_of, replay
from barograph.history import cycles as recorded_cycles
from barograph.history import entries
from barograph.history.places import place_of
from barograph.history.scenario import scenario_of
from barograph.model import BadInput, Cycle, LatencyKind, TopologyMetrics
from barograph.model.checks import require
from barograph.policy.configured import require_policy
from barograph.policy.registry import DEFAULT, named

log = logging.getLogger(__name__)

SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder given to run --history")
    add_flags(parser, REPLAY)
    add_seed(parser, "the simulation")
    parser.add_argument("--format", default="table", metavar="json|table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    require(args.format in ("json", "table"), f"--format must be json or table, not {args.format!r}")
    seed = parse_seed(args.seed)
    config = config_of(args, REPLAY)
    require_policy(config, (NO_POLICY,))
    policy = config["policy"] or DEFAULT
    folder = place_of(args.folder)
    own = next((e.policy for e in entries(folder)), "")
    found = list(recorded_cycles(folder))
    scenario = scenario_of(found, str(args.folder))
    report: dict[str, Any] = {"seconds": round(scenario.duration_s, 3), "recorded": _recorded(own, found)}
    if _usable(own):
        report["simulated"] = _simulated(replay(found, str(args.folder), own, seed)[1])
    report["replayed"] = _simulated(replay(found, str(args.folder), policy, seed)[1])
    print(json.dumps(report, indent=2) if args.format == "json" else _table(report))
    return 0


def _usable(policy: str) -> bool:
    """A history may name a policy of a package that is not installed here."""
    try:
        named(policy)
    except BadInput as error:
        log.warning("the recorded policy is not simulated: %s", error)
        return False
    return True


def _recorded(policy: str, cycles: list[Cycle]) -> dict[str, Any]:
    metrics = [t for c in cycles for t in c.snapshot.topology_metrics]
    decisions = [d for c in cycles for d in decisions_of(c.snapshot, c.plan, c.outcome)]
    used = [len({s.node for s in c.snapshot.placement.slots.values()}) for c in cycles]
    return {
        "policy": policy,
        "mean_ms": _mean_ms(metrics, LatencyKind.COLUMN),
        "record_mean_ms": _mean_ms(metrics, LatencyKind.RECORD),
        "completed_rows": sum(t.completed_rows for t in metrics),
        "late_rows": sum(t.late_rows for t in metrics),
        "cpu_reserved_s": round(sum(_reserved_s(c) for c in cycles), 3),
        "cpu_used_s": round(sum(float(c.snapshot.metrics.columns["cpu_s"].sum()) for c in cycles), 3),
        "nodes_mean": round(sum(used) / len(used), 3) if used else None,
        "moves": sum(d.moves for d in decisions),
        "rescales": sum(d.rescales for d in decisions),
        "decisions": [{"at_s": d.at_s, "what": list(d.what), "shares": d.shares} for d in decisions],
    }


def _mean_ms(metrics: Sequence[TopologyMetrics], kind: LatencyKind) -> float | None:
    found = ((t.of_kind(kind), t.completed_rows) for t in metrics)
    known = [(latency.mean, rows) for latency, rows in found if latency is not None]
    rows = sum(n for _, n in known)
    return round(sum(ms * n for ms, n in known) / rows, 3) if rows else None


def _reserved_s(cycle: Cycle) -> float:
    return cycle.snapshot.cycle_s * sum(sum(d.shares_pct) for d in cycle.demand.operators) / 100.0


def _simulated(told: Told) -> dict[str, Any]:
    result = told.result
    return {
        "policy": told.policy,
        "mean_ms": result.complete_time_ms.mean,
        "record_mean_ms": None,
        "completed_rows": result.completed_rows,
        "late_rows": result.late_rows,
        "cpu_reserved_s": result.cpu_reserved_s,
        "cpu_used_s": result.cpu_used_s,
        "nodes_mean": result.nodes_mean,
        "moves": result.moves,
        "rescales": sum(d.rescales for d in told.decisions),
        "decisions": [{"at_s": d.at_s, "what": list(d.what), "shares": d.shares} for d in told.decisions],
    }


def _table(report: dict[str, Any]) -> str:
    columns = [name for name in ("recorded", "simulated", "replayed") if name in report]
    lines = [f"{report['seconds']:,.0f} s of history", ""]
    keys = [key for key in report["replayed"] if key != "decisions"]
    lines += table([["", *columns], *([key, *(_shown(report[c][key]) for c in columns)] for key in keys)], right=" >>>")
    lines += ["", f"what {report['replayed']['policy']} would have done, and what was done"]
    both = [(d["at_s"], "recorded", d) for d in report["recorded"]["decisions"]]
    both += [(d["at_s"], "replayed", d) for d in report["replayed"]["decisions"]]
    rows = []
    for at_s, run_name, decision in sorted(both, key=lambda x: (x[0], x[1]))[:SHOWN]:
        what = ", ".join(decision["what"][:4]) + (" ..." if len(decision["what"]) > 4 else "")
        rows.append([f"{at_s:.1f} s", run_name, what])
    lines += table(rows, right=">", indent=2)
    if len(both) > SHOWN:
        lines.append(f"  and {len(both) - SHOWN} more; --format json has them all")
    return "\n".join(lines)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)
