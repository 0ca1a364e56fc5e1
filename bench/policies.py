"""All scenarios x all policies in the simulator: the best policy by late rows, then complete time, then CPU reserved.

Grain: flows, and rows for the traffic scenarios, where it matters which instance sends to which. The first ten minutes
of each (BENCH_SECONDS for more); days of load in full. Scenarios held out of tuning are shown separately. Migration
modes are compared by the bench ``migration``. Two processes, or BENCH_PROCESSES. JSON on stdout,
the tables on stderr. Fails if rows are lost or a run breaks.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import Scenario, find, read_calibration, shipped
from barograph.policy.registry import DEFAULT, POLICIES
from bench._held_out import HELD_OUT
from bench._merit import Run, ranked, why_not

SECONDS = float(os.environ.get("BENCH_SECONDS", "600"))
PROCESSES = int(os.environ.get("BENCH_PROCESSES", "2"))
VARIANTS = ("interference/no-fences", "priority-1/nodes-24", "chain-stages/s3-r2", "chain-stages/s7-r4")
FULL_LENGTH = ("diurnal-hour", "diurnal-two-peaks", "flash-crowd")  # a day of load must be complete


def main() -> int:
    started = time.perf_counter()
    names = [n for n in shipped() if "/" not in n and n != "migration"] + list(VARIANTS)
    tasks = [(scenario, policy) for scenario in names for policy in POLICIES]
    with ProcessPoolExecutor(PROCESSES) as pool:
        runs = []
        for run in pool.map(_run, *zip(*tasks, strict=True), chunksize=1):
            runs.append(run)
            if len(runs) % len(POLICIES) == 0:
                print(f"{tasks[len(runs) - 1][0]} done after {time.perf_counter() - started:.0f} s", file=sys.stderr)
    by_scenario: dict[str, list[Run]] = {n: [] for n in names}
    for (scenario, _), run in zip(tasks, runs, strict=True):
        by_scenario[scenario].append(run)
    calibrated = read_calibration().calibrated
    heading = "calibrated" if calibrated else "uncalibrated"
    print(f"Policies in the simulator ({heading}); {SECONDS:g} s of each scenario", file=sys.stderr)
    behind: dict[str, str] = {}
    for heading, held_out in (("Scenarios used for tuning", False), ("Scenarios held out of tuning", True)):
        print(f"\n{heading}", file=sys.stderr)
        for name in (n for n in names if (n in HELD_OUT) is held_out):
            order = ranked(by_scenario[name])
            mine = next(r for r in order if r.policy == DEFAULT)
            if order[0].policy != DEFAULT:
                behind[name] = why_not(mine, order[0])
            _table(name, order, behind.get(name))
    first = {n: ranked(found)[0].policy for n, found in by_scenario.items()}
    for heading, group in (("tuned", [n for n in names if n not in HELD_OUT]), ("held out", list(HELD_OUT))):
        count = sum(first[n] == DEFAULT for n in group)
        print(f"{DEFAULT} is first in {count} of {len(group)} scenarios, {heading}", file=sys.stderr)
    lost = [f"{n}: {r.policy}" for n, found in by_scenario.items() for r in found if r.lost_rows]
    report = {
        "calibrated": calibrated,
        "seconds_of_each": SECONDS,
        "scenarios": {n: [asdict(r) for r in ranked(found)] for n, found in by_scenario.items()},
        "first": first,
        "held_out": list(HELD_OUT),
        "default_is_behind": behind,
        "lost_rows": lost,
        "wall_s": round(time.perf_counter() - started, 1),
    }
    print(json.dumps(report, indent=1))
    return 1 if lost else 0


def _scenario(name: str) -> tuple[Scenario, str]:
    scenario = find(name)
    flows = scenario.paper != "Aniello et al."
    seconds = scenario.duration_s if name in FULL_LENGTH else min(scenario.duration_s, SECONDS)
    short = replace(scenario, duration_s=seconds)
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


def _table(name: str, order: Sequence[Run], why: str | None) -> None:
    print(f"\n{name}", file=sys.stderr)
    head = f"  {'':2} {'policy':<12} {'late':>12} {'mean ms':>12} {'p99 ms':>12} {'CPU reserved':>12} {'used':>9}"
    print(f"{head} {'nodes':>6} {'moves':>6} {'reconf':>6}", file=sys.stderr)
    for place, r in enumerate(order, start=1):
        line = f"  {place:>2} {r.policy:<12} {r.late_rows:>12,.0f} {r.mean_ms:>12,.1f} {r.p99_ms:>12,.1f}"
        line += f" {r.cpu_reserved_s:>12,.0f} {r.cpu_used_s:>9,.0f} {r.nodes_mean:>6.2f} {r.moves:>6} "
        print(f"{line}{r.reconfigurations:>6}", file=sys.stderr)
    if why:
        print(f"  {DEFAULT} is not first: {why}", file=sys.stderr)
