"""All scenarios x all policies in the simulator: who is best by late rows, then complete time, then CPU reserved.

Flows, but for the traffic scenarios, whose point is which instance sends to which: rows. The first ten minutes of each
(BENCH_SECONDS for more). Migration has no policies to compare but ways to move: its table is modes x moved instances.
Two processes, or BENCH_PROCESSES. JSON on stdout, the tables on stderr. Fails when rows are lost, when a run breaks, or
when the default policy is neither first nor explained.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace

from barograph.engines.sim import Result, Scenario, find, read_calibration, shipped
from barograph.model import MigrationMode
from barograph.policies import DEFAULT, POLICIES
from barograph.rehearsal import rehearse
from bench._merit import Run, ranked, why_not

SECONDS = float(os.environ.get("BENCH_SECONDS", "600"))
PROCESSES = int(os.environ.get("BENCH_PROCESSES", "2"))
VARIANTS = ("interference/no-fences", "priority-1/nodes-24", "chain-stages/s3-r2", "chain-stages/s7-r4")
MOVED = (1, 2, 4, 8, 16)


def main() -> int:
    started = time.perf_counter()
    names = [n for n in shipped() if "/" not in n and n != "migration"] + list(VARIANTS)
    tasks = [(scenario, policy) for scenario in names for policy in POLICIES]
    ways = [f"migration/{mode}-m{moved}" for mode in MigrationMode for moved in MOVED]
    with ProcessPoolExecutor(PROCESSES) as pool:
        runs = []
        for run in pool.map(_run, *zip(*tasks, strict=True), chunksize=1):
            runs.append(run)
            if len(runs) % len(POLICIES) == 0:
                print(f"{tasks[len(runs) - 1][0]} done after {time.perf_counter() - started:.0f} s", file=sys.stderr)
        moved = list(pool.map(_move, ways, chunksize=2))
    by_scenario: dict[str, list[Run]] = {n: [] for n in names}
    for (scenario, _), run in zip(tasks, runs, strict=True):
        by_scenario[scenario].append(run)
    calibrated = read_calibration().calibrated
    heading = "calibrated" if calibrated else "uncalibrated"
    print(f"Policies in the simulator ({heading}); {SECONDS:g} s of each scenario", file=sys.stderr)
    behind: dict[str, str] = {}
    for name, found in by_scenario.items():
        order = ranked(found)
        mine = next(r for r in order if r.policy == DEFAULT)
        if order[0].policy != DEFAULT:
            behind[name] = why_not(mine, order[0])
        _table(name, order, behind.get(name))
    _moves_table(moved)
    lost = [f"{n}: {r.policy}" for n, found in by_scenario.items() for r in found if r.lost_rows]
    lost += [w for w, r in zip(ways, moved, strict=True) if r["lost_rows"]]
    report = {
        "calibrated": calibrated,
        "seconds_of_each": SECONDS,
        "scenarios": {n: [asdict(r) for r in ranked(found)] for n, found in by_scenario.items()},
        "first": {n: ranked(found)[0].policy for n, found in by_scenario.items()},
        "default_is_behind": behind,
        "migration": moved,
        "lost_rows": lost,
        "wall_s": round(time.perf_counter() - started, 1),
    }
    print(json.dumps(report, indent=1))
    return 1 if lost else 0


def _scenario(name: str) -> tuple[Scenario, str]:
    scenario = find(name)
    flows = scenario.page != "traffic.md"
    step_s = max(scenario.step_s, 0.5) if flows else scenario.step_s
    short = replace(scenario, duration_s=min(scenario.duration_s, SECONDS), step_s=step_s)
    return short, "flows" if flows else "rows"


def _run(name: str, policy: str) -> Run:
    scenario, grain = _scenario(name)
    r = rehearse(scenario, policy, grain=grain)
    return Run(
        policy,
        r.late_rows,
        r.complete_time_ms.mean,
        r.complete_time_ms.p99,
        r.cpu_reserved_s,
        r.cpu_used_s,
        r.nodes_mean,
        r.moves,
        r.reconfigurations,
        r.lost_rows,
    )


def _move(name: str) -> dict[str, object]:
    scenario, _ = _scenario(name)
    r: Result = rehearse(replace(scenario, step_s=0.25), "none", grain="flows")
    (topology,) = r.topologies
    return {
        "scenario": name,
        "mode": name.removeprefix("migration/").rpartition("-")[0],
        "moved": int(name.rpartition("-m")[2]),
        "degraded_s": topology.degraded_s,
        "stopped_s": topology.stopped_s,
        "mean_ms": r.complete_time_ms.mean,
        "completed_rows": r.completed_rows,
        "replayed_rows": r.replayed_rows,
        "late_rows": r.late_rows,
        "lost_rows": r.lost_rows,
    }


def _table(name: str, order: Sequence[Run], why: str | None) -> None:
    print(f"\n{name}", file=sys.stderr)
    head = f"  {'':2} {'policy':<12} {'late':>12} {'mean ms':>12} {'p99 ms':>12} {'CPU-s held':>12} {'used':>9}"
    print(f"{head} {'nodes':>6} {'moves':>6} {'reconf':>6}", file=sys.stderr)
    for place, r in enumerate(order, start=1):
        line = f"  {place:>2} {r.policy:<12} {r.late_rows:>12,.0f} {r.mean_ms:>12,.1f} {r.p99_ms:>12,.1f}"
        line += f" {r.cpu_reserved_s:>12,.0f} {r.cpu_used_s:>9,.0f} {r.nodes_mean:>6.2f} {r.moves:>6} "
        print(f"{line}{r.reconfigurations:>6}", file=sys.stderr)
    if why:
        print(f"  {DEFAULT} is not first: {why}", file=sys.stderr)


def _moves_table(moved: Sequence[dict[str, object]]) -> None:
    print("\nmigration: seconds of 600 at least 60 % below stable / at a stand, by moved instances", file=sys.stderr)
    print(f"  {'mode':<14}" + "".join(f"{m:>12}" for m in MOVED), file=sys.stderr)
    for mode in MigrationMode:
        cells = []
        for row in moved:
            if row["mode"] == mode:
                degraded = row["degraded_s"]
                assert isinstance(degraded, dict)
                cells.append(f"{degraded[60]}/{degraded[100]}")
        print(f"  {mode:<14}" + "".join(f"{c:>12}" for c in cells), file=sys.stderr)
