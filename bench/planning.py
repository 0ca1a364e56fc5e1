"""Time and memory to plan a recorded cluster of 24,349 instances on 1,312 nodes, for every placing policy.

Each decision runs in a process of its own through ``barograph plan --validate``. Seconds are the best of three, since
other work on the machine can only add to them. Bars: ours and r-storm 3 s, online 10 s, the others 3 s, all under 1 GiB
and valid by their own rules; ours and r-storm place all instances, the others give a reason for each unplaced one. From
a present placement with one node lost, ours takes at most 1 s and moves at most 1.2 x the instances lost.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CLUSTER = "largeCluster01"
BARS_S = {
    "adaptive": 3.0,
    "r-storm": 3.0,
    "online": 10.0,
    "even": 3.0,
    "offline": 3.0,
    "t-storm": 3.0,
    "liu": 3.0,
    "isolation": 3.0,
    "sps": 3.0,
    "dps": 3.0,
}
WHOLE = ("adaptive", "r-storm")
MEMORY_MB = 1024.0
LOST_S, LOST_MOVES = 1.0, 1.2
RUNS = 3


def plan(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "barograph.cli.main", "plan", "--name", CLUSTER, "--rates", "synthetic"]
    done = subprocess.run(
        [*command, "--seed", "1", "--format", "json", "--validate", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def best(bar_s: float, *arguments: str) -> dict[str, Any]:
    """The fastest of a few runs; no further run is made once one is well within its bar."""
    found: dict[str, Any] = {}
    for _ in range(RUNS):
        report = plan(*arguments)
        if not found or report["seconds"] < found["seconds"]:
            found = report
        if found["seconds"] <= bar_s / 2:
            break
    return found


def judge(policy: str, report: dict[str, Any], bar_s: float) -> list[str]:
    missed = []
    if report["seconds"] > bar_s:
        missed.append(f"{policy}: {report['seconds']} s, above {bar_s} s")
    if report["peak_memory_mb"] >= MEMORY_MB:
        missed.append(f"{policy}: {report['peak_memory_mb']} MB, not under {MEMORY_MB} MB")
    if not report["valid"]:
        missed.append(f"{policy}: {len(report['violations'])} rules broken, first: {report['violations'][0]}")
    if policy in WHOLE and report["unplaced"]:
        missed.append(f"{policy}: {len(report['unplaced'])} unplaced")
    if any(not row["reason"] for row in report["unplaced"]):
        missed.append(f"{policy}: unplaced without a reason")
    return missed


def lost_node(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Plan, lose the node with most instances, plan again from what still runs."""
    saved = folder / "saved.json"
    before = plan("--policy", "adaptive", "--save", str(saved))["placement"]
    count: dict[str, int] = {}
    for row in before:
        count[row["node"]] = count.get(row["node"], 0) + 1
    victim = max(sorted(count), key=count.__getitem__)
    content = json.loads(saved.read_text(encoding="utf-8"))
    cluster = content["clusters"][CLUSTER]
    cluster["nodes"] = [n for n in cluster["nodes"] if n["id"] != victim]
    saved.write_text(json.dumps(content), encoding="utf-8")
    after = best(LOST_S, "--policy", "adaptive", "--cluster", str(saved))
    key = ("topology", "operator", "index")
    where = {tuple(r[k] for k in key): (r["node"], r["slot"]) for r in before}
    moved = sum(where[tuple(r[k] for k in key)] != (r["node"], r["slot"]) for r in after["placement"])
    result = {"seconds": after["seconds"], "instances_lost": count[victim], "instances_moved": moved}
    missed = judge("adaptive, one node lost", after, LOST_S)
    if after["unplaced"]:
        missed.append(f"one node lost: {len(after['unplaced'])} unplaced")
    if moved > LOST_MOVES * count[victim]:
        missed.append(f"one node lost: {moved} moved for {count[victim]} lost")
    return result, missed


def main() -> int:
    result: dict[str, Any] = {"cluster": CLUSTER, "policies": {}}
    missed: list[str] = []
    for policy, bar_s in BARS_S.items():
        report = best(bar_s, "--policy", policy)
        missed += judge(policy, report, bar_s)
        kept = {k: v for k, v in report.items() if k not in ("placement", "notes", "unplaced", "violations")}
        result["policies"][policy] = {"bar_s": bar_s, **kept, "unplaced": len(report["unplaced"])}
        print(
            f"{policy:<10} {report['seconds']:>8.3f} s of {bar_s:g} s  {report['peak_memory_mb']} MB", file=sys.stderr
        )
    with tempfile.TemporaryDirectory() as folder:
        result["one_node_lost"], more = lost_node(Path(folder))
    missed += more
    print(f"one node lost: {result['one_node_lost']}", file=sys.stderr)
    result |= {"missed": missed, "ok": not missed}
    print(json.dumps(result, indent=2))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
