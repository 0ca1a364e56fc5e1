"""Compute where a policy would place a cluster: one that ships with Barograph, or one of yours.

    barograph plan --name largeCluster01 --policy adaptive --rates synthetic --seed 1 --validate
    barograph plan --cluster mine.json --name c --policy online --format json > plan.json

The file has the format of the recordings that ship: clusters by name, each with nodes and topologies. A node has an id,
or stands for a count of equal ones. A cluster may have the current placement (a list as this command prints it): the
policy starts from it, and instances on nodes that no longer exist are placed anew. --save writes the cluster with every
node by its id and the new placement, to be edited and planned again.

The placers few-disturbed and thrifty, which are those of liu and adaptive, can be named as policies too.

A file with an "origin" is a recording and is read leniently: topologies without components are skipped, groupings that
Spark does not have count as shuffle (local_or_shuffle, custom ones) or as fields (partial_key), loops are cut where
they close; notes lists each such change. A file without an "origin" is read strictly; mark loops with "feedback": true
on the input that closes them. Recordings have no rates; --rates synthetic makes some up: 100 rows/s from each source
instance, passed on by every operator.
--validate checks the placement independently against the policy's own rules, and exits with 1 if one is broken.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

from barograph.cli.support.options import add_seed, parse_seed
from barograph.cli.support.tables import notes_block, table
from barograph.config.flags import add_flags, config_of
from barograph.config.option import PLAN
from barograph.model import BadInput, Demand, Instance, Snapshot
from barograph.place import PlaceDecision
from barograph.place.adaptive.thrifty import Thrifty
from barograph.place.few_disturbed import FewDisturbed
from barograph.place.offline import Offline
from barograph.place.online import Online
from barograph.place.r_storm import RStorm
from barograph.place.steady import Steady
from barograph.place.support.cost import traffic_between
from barograph.place.t_storm import TStorm
from barograph.policy.configured import require_policy
from barograph.policy.definition import Policy
from barograph.policy.registry import DEFAULT, named
from barograph.recordings import Recording, demand_of, read, shipped, snapshot_of
from barograph.recordings.validate import Rules, loads, overcommitted, violations

# placers that go by another name as policies
ALSO = {"few-disturbed": "liu", "thrifty": "adaptive"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster", metavar="FILE", type=Path, help="a JSON file of clusters (default: the recordings that ship)"
    )
    parser.add_argument("--name", required=True, metavar="CLUSTER", help="which cluster of the file")
    add_flags(parser, PLAN)
    parser.add_argument(
        "--rates", choices=("file", "synthetic"), default="file", help="where rates come from (default %(default)s)"
    )
    add_seed(parser, "synthetic rates")
    parser.add_argument("--format", choices=("json", "table"), default="table", help="(default %(default)s)")
    parser.add_argument("--validate", action="store_true", help="check the placement against the policy's own rules")
    parser.add_argument("--save", metavar="FILE", type=Path, help="write the cluster with the new placement")


def run(args: argparse.Namespace) -> int:
    config = config_of(args, PLAN)
    require_policy(config, ALSO)
    name = config["policy"] or DEFAULT
    policy = named(ALSO.get(name, name))
    seed = parse_seed(args.seed)
    recording = read(args.cluster, args.name)
    now = snapshot_of(recording, synthetic=args.rates == "synthetic", seed=seed)
    demand = demand_of(recording)
    began = time.perf_counter()
    allotment = policy.allotter((), now, demand)
    decision = policy.placer((), now, demand, allotment)
    seconds = time.perf_counter() - began
    report = _report(recording, now, demand, decision, seconds)
    broken: list[str] = []
    if args.validate:
        rules = rules_of(policy, dict(allotment.nodes))
        refused = [(str(_instance(u)), str(u["reason"])) for u in _rows(report["unplaced"])]
        broken = violations(recording, decision.placement, refused, rules)
        report |= {"valid": not broken, "violations": broken}
    if args.save is not None:
        _save(args.cluster, args.name, recording, report, args.save)
    print(json.dumps(report) if args.format == "json" else _table(report))
    return 1 if broken else 0


def rules_of(policy: Policy, nodes: dict[str, tuple[str, ...]]) -> Rules:
    """What the policy's placer guarantees; those not named here ignore CPU and memory."""
    placer = policy.placer
    if isinstance(placer, Thrifty | Steady):
        return Rules(cpu=True, memory=True, heap=True, nodes=nodes)
    if isinstance(placer, RStorm):
        return Rules(cpu=True, memory=True, heap=True, whole=True, nodes=nodes)
    if isinstance(placer, TStorm):
        return Rules(cpu=True, gamma=placer.gamma, workers_per_node=1, nodes=nodes)
    if isinstance(placer, Online):
        return Rules(cpu=True, alpha=placer.alpha, nodes=nodes)
    if isinstance(placer, Offline):
        return Rules(alpha=placer.alpha, nodes=nodes)
    if isinstance(placer, FewDisturbed):
        return Rules(cpu=True, workers_per_node=2, nodes=nodes)
    return Rules(nodes=nodes)


def _report(
    recording: Recording, now: Snapshot, demand: Demand, decision: PlaceDecision, seconds: float
) -> dict[str, object]:
    placed = decision.placement
    between_nodes, between_workers = traffic_between(now, demand, placed)
    held = loads(recording, placed)
    nodes = {n.name: n for n in recording.nodes}
    notes = list(recording.notes)
    if not now.traffic:
        notes.append("the file has no rates, so traffic counts as 0; --rates synthetic makes some up")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": round(seconds, 4),
        "peak_memory_mb": round(peak / (1024.0 if sys.platform != "darwin" else 1024.0 * 1024.0), 1),
        "nodes_used": len({s.node for s in placed.slots.values()}),
        "workers_used": len(set(placed.slots.values())),
        "inter_node_traffic": round(between_nodes, 6),
        "inter_worker_traffic": round(between_workers, 6),
        "largest_node_load": round(max((cpu / nodes[n].cpu_pct for n, (cpu, _) in held.items()), default=0.0), 6),
        "overcommitted_nodes": sum(overcommitted(nodes[n], load) for n, load in held.items()),
        "unplaced": _unplaced(recording, decision),
        "notes": notes,
        "placement": [
            {"topology": i.topology, "operator": i.operator, "index": i.index, "node": s.node, "slot": s.index}
            for i, s in placed.slots.items()
        ],
    }


def _unplaced(recording: Recording, decision: PlaceDecision) -> list[dict[str, object]]:
    reasons = {r.what: r.reason for r in decision.unplaced}
    return [
        {
            "topology": i.topology,
            "operator": i.operator,
            "index": i.index,
            "reason": reasons.get(str(i), "this policy places nothing itself: the engine does"),
        }
        for topology in recording.topologies
        for i in topology.instances()
        if i not in decision.placement
    ]


def _rows(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


def _instance(row: dict[str, object]) -> Instance:
    return Instance(str(row["topology"]), str(row["operator"]), int(str(row["index"])))


def _save(source: Path | None, name: str, recording: Recording, report: dict[str, object], to: Path) -> None:
    """The cluster as it was read, every node by its id, and the placement that was just made."""
    text = shipped() if source is None else source.read_text(encoding="utf-8")
    whole = json.loads(text)
    cluster = whole["clusters"][name]
    groups = [row for row in cluster["nodes"] for _ in range(1 if "id" in row else int(row.get("count", 1)))]
    cluster["nodes"] = [
        {"id": node.name, **{k: v for k, v in row.items() if k not in ("id", "count")}}
        for node, row in zip(recording.nodes, groups, strict=True)
    ]
    cluster["placement"] = report["placement"]
    whole["clusters"] = {name: cluster}
    try:
        to.write_text(json.dumps(whole), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--save: {to} cannot be written: {error.strerror}") from None


def _table(report: dict[str, object]) -> str:
    why: dict[str, int] = {}
    for row in _rows(report["unplaced"]):
        why[str(row["reason"])] = why.get(str(row["reason"]), 0) + 1
    rows = [[key, str(value)] for key, value in report.items() if not isinstance(value, list)]
    rows += [["placed", str(len(_rows(report["placement"])))], ["unplaced", str(sum(why.values()))]]
    lines = table(rows)
    lines += [f"  {count} x {reason}" for reason, count in why.items()]
    violated = report.get("violations")
    if isinstance(violated, list) and violated:
        lines += ["violations", *(f"  {value}" for value in violated)]
    notes = report["notes"]
    assert isinstance(notes, list)
    return "\n".join([*lines, *notes_block(notes)])
