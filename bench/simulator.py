"""How much faster than real time the simulator is: rows at the papers' scale, flows at 24,349 instances.

Bars: rows at least 100 times, flows at least 100 times with a fixed plan and at least 5 times with the default policy
planning in the loop. Processor time is given beside wall time, since other processes may share the machine; the
bars are on processor time.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import KeepPlacement, Scenario, Simulator, find, run
from barograph.policy.registry import DEFAULT

ROWS = ("wordcount-regular", "wordcount-random", "http-diurnal", "migration", "priority-1", "chain-over-time")
CLUSTER = "recording:largeCluster01"


def main() -> int:
    rows = {name: _timed(_first(name, 300.0), _fixed("rows")) for name in ROWS}
    large = _first(CLUSTER, 300.0)
    fixed = _timed(large, _fixed("flows"))
    planned = _timed(replace(large, duration_s=60.0), lambda s: rehearse(s, DEFAULT).simulated_s)
    for name, found in {**rows, f"{CLUSTER}, fixed": fixed, f"{CLUSTER}, {DEFAULT}": planned}.items():
        print(
            f"{name:<36} {found['cpu']:>8.0f} times real time ({found['wall']:.0f} by the wall clock)", file=sys.stderr
        )
    instances = sum(o.parallelism for w in large.workloads for o in w.topology.operators)
    report = {"rows": rows, "instances": instances, "flows_fixed_plan": fixed, "flows_with_planning": planned}
    print(json.dumps(report, indent=1))
    met = all(f["cpu"] >= 100 for f in rows.values()) and fixed["cpu"] >= 100 and planned["cpu"] >= 5
    return 0 if met else 1


def _first(name: str, seconds: float) -> Scenario:
    scenario = find(name)
    return replace(scenario, duration_s=min(scenario.duration_s, seconds))


def _fixed(grain: str) -> Callable[[Scenario], float]:
    return lambda s: run(Simulator(s, 0, grain=grain), KeepPlacement()).simulated_s


def _timed(scenario: Scenario, simulate: Callable[[Scenario], float]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    seconds = simulate(scenario)
    wall_s, cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    return {"seconds": seconds, "wall": round(seconds / wall_s, 1), "cpu": round(seconds / cpu_s, 1)}
