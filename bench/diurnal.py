"""A day of load: the nodes that the default policy uses, against the smallest static cluster for the peak.

In the simulator a day in an hour (scenario ``diurnal-hour``); the static cluster is the smallest whose p99 is at most a
tenth above the default policy's. On Spark a day in four minutes (BENCH_SECONDS; 0 leaves Spark out), three nodes,
against all three all the time. JSON: ``sim`` and ``spark`` with ``nodes_mean``,
``p99_ms``, ``mean_ms``, ``reserved_core_s``, ``used_core_s``, ``moves``. Bars: at most 0.6 of the static cluster's
node-hours, and CPU reserved at most 1.6 times CPU used.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import find
from barograph.policy.registry import DEFAULT
from bench._figures import Bar, finish, say
from bench._whole_run import is_exact, whole_run

SECONDS = float(os.environ.get("BENCH_SECONDS", "240"))
SCENARIO = "diurnal-hour"
EQUAL_P99 = 1.1
# Cost of a row in addition to Spark's own work, in microseconds of CPU.
BUSY = "split=300,count=40"
PEAK, NIGHT = 900, 130
# The share of the peak in each twelfth of the day.
DAY = (0.0, 0.0, 0.05, 0.25, 0.6, 0.85, 0.8, 0.75, 0.9, 1.0, 0.5, 0.1, 0.0)


def main() -> int:
    sim = simulated()
    found: dict[str, object] = {"sim": sim}
    ours, static = sim[DEFAULT], sim["static"]
    bars = [
        Bar("node-hours, adaptive / static peak (simulator)", ours["nodes_mean"] / static["nodes_mean"], at_most=0.6),
        Bar("CPU reserved / used (simulator)", ours["reserved_core_s"] / ours["used_core_s"], at_most=1.6),
    ]
    if SECONDS:
        spark = on_spark()
        found["spark"] = spark
        ours, static = spark[DEFAULT], spark["static"]
        bars += [
            Bar("node-seconds, adaptive / all nodes (Spark)", ours["nodes_mean"] / static["nodes_mean"], at_most=0.6),
            Bar("CPU reserved / used (Spark)", ours["reserved_core_s"] / ours["used_core_s"], at_most=1.6),
            Bar("runs in which every row was counted once", ours["exact"] + static["exact"], at_least=2.0),
        ]
    return finish(found, bars)


def simulated() -> dict[str, dict[str, float]]:
    """The default policy on all nodes, and the smallest static cluster with an equal p99."""
    total = len(find(SCENARIO).nodes)
    with ProcessPoolExecutor(int(os.environ.get("BENCH_PROCESSES", "2"))) as pool:
        ours = pool.submit(_simulated, DEFAULT, total)
        smaller = {n: pool.submit(_simulated, "even", n) for n in range(total // 2, total + 1)}
        found = {DEFAULT: ours.result()}
        for nodes, future in smaller.items():
            result = future.result()
            say(f"{nodes} nodes all day: p99 {result['p99_ms']:,.0f} ms")
            if result["p99_ms"] <= EQUAL_P99 * found[DEFAULT]["p99_ms"]:
                found["static"] = result
                for left in smaller.values():
                    left.cancel()
                break
        else:
            found["static"] = result
    for name, r in found.items():
        say(f"{name:<10} {r['nodes_mean']:6.2f} nodes, p99 {r['p99_ms']:,.0f} ms, mean {r['mean_ms']:,.1f} ms")
    return found


def _simulated(policy: str, nodes: int) -> dict[str, float]:
    scenario = find(SCENARIO)
    r = rehearse(replace(scenario, nodes=scenario.nodes[:nodes]), policy)
    return {
        "nodes_mean": r.nodes_mean,
        "p99_ms": r.complete_time_ms.p99,
        "mean_ms": r.complete_time_ms.mean,
        "reserved_core_s": r.cpu_reserved_s,
        "used_core_s": r.cpu_used_s,
        "moves": float(r.moves),
    }


def on_spark() -> dict[str, dict[str, float]]:
    step_s = SECONDS / (len(DAY) - 1)
    load = "ramp " + " ".join(f"{k * step_s:g}s={NIGHT + part * (PEAK - NIGHT):.0f}" for k, part in enumerate(DAY))
    found = {}
    for name, policy in ((DEFAULT, DEFAULT), ("static", "even")):
        options = ("--release-after", "15s") if policy == DEFAULT else ("--release-after", "never")
        report, said = whole_run(
            "wordcount", "--policy", policy, "--load", load, "--seconds", f"{SECONDS:g}", "--nodes", "3",
            "--node-cpu", "0.6", "--cycle", "2s", "--busy", BUSY, "--parallelism", "source=2,split=3,count=3", *options,
            timeout_s=SECONDS + 400.0,
        )  # fmt: skip
        if report is None:
            raise RuntimeError(f"the run under {policy} failed:\n{said}")
        latency, cpu = report["latency_ms"]["due"], report["cpu_core_s"]
        found[name] = {
            "nodes_mean": report["nodes_used"]["mean"] or 0.0,
            "p99_ms": latency["p99"],
            "mean_ms": latency["mean"],
            "reserved_core_s": cpu["reserved"] or 0.0,
            "used_core_s": cpu["used"] or 0.0,
            "moves": float(report["moves"] or 0),
            "exact": float(is_exact(report)),
        }
        r = found[name]
        say(f"Spark {name:<10} {r['nodes_mean']:.2f} nodes, p99 {r['p99_ms']:,.0f} ms, moves {r['moves']:.0f}")
    return found
