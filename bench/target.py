"""Targets for the p99 of 50, 200 and 1,000 ms on the regular load: seconds above them and CPU, against fixed shares.

The load of `regular`, with cycles of a second, under adaptive without a target, with each target, and under fixed
shares of the peak; on Spark (about 27 minutes) and in the simulator with the costs that were measured there. JSON:
``spark`` and ``sim``: per run ``seconds``, ``above`` (share of the seconds in which p99 was above each target, or no
row came out), ``silent`` (share of the latter), ``p99_ms`` and ``mean_ms`` of all rows, ``reserved_core_s``,
``nodes_mean``, ``moves``, ``said`` (what was said of the target, and how often), ``exact``. Bars: rows counted once;
0.9 of the load's seconds judged; with a target no more CPU than fixed-peak; in the simulator a shorter target reserves
at least as much CPU, and at most 5 % of the seconds are above a target.
BENCH_SECONDS (240), BENCH_TARGETS (50,200,1000), BENCH_ENGINES (spark,sim), BENCH_FOLDER (keeps reports and histories).
"""

import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Scenario, Simulator, run
from barograph.experiments.figures.asked_shares import asked
from barograph.experiments.figures.run_meter import metered
from barograph.history.read import cycles
from barograph.model import Cycle
from barograph.policy.definition import with_options, with_shares
from barograph.policy.registry import named
from barograph.workloads import wordcount
from bench._columns import OPTIONS, THETA_PCT, column, one
from bench._figures import Bar, finish, say
from bench._on_sim import scenario_of, scenario_with
from bench.regular import load

SECONDS = float(os.environ.get("BENCH_SECONDS", "240"))
TARGETS_MS = tuple(float(t) for t in os.environ.get("BENCH_TARGETS", "50,200,1000").split(","))
ENGINES = os.environ.get("BENCH_ENGINES", "spark,sim").split(",")
NONE, PEAK = "none", "fixed-peak"
COST_S = {"source": 60e-6, "split": 360e-6, "count": 52e-6}  # of a row, in the simulator alone
MOST_ABOVE = 0.05
_SECOND = ("--cycle", "1s")


@dataclass(frozen=True, slots=True)
class Held:
    """One run. above: by target, in ms, the share of the seconds in which the p99 was above it. silent: the share in
    which no row came out; these count as above every target."""

    seconds: int
    silent: float
    above: dict[str, float]
    p99_ms: float
    mean_ms: float
    reserved_core_s: float
    nodes_mean: float
    moves: int
    said: dict[str, int]
    exact: bool


def main() -> int:
    found: dict[str, dict[str, Held]] = {}
    with ExitStack() as ending:
        kept = os.environ.get("BENCH_FOLDER")
        folder = Path(kept or ending.enter_context(tempfile.TemporaryDirectory(prefix="barograph-bench-")))
        if "spark" in ENGINES:
            found["spark"] = on_spark(folder)
        if "sim" in ENGINES:
            scenario = scenario_with(load(SECONDS), SECONDS, COST_S, (0.4, 0.32, 0.28))
            if "spark" in ENGINES:
                scenario = scenario_of(load(SECONDS), SECONDS, list(cycles(folder / NONE / "history-adaptive")))
            found["sim"] = on_sim(replace(scenario, cycle_s=1.0))
    for engine, runs in found.items():
        show(engine, runs)
    result = {engine: {name: asdict(held) for name, held in runs.items()} for engine, runs in found.items()}
    return finish({"load": load(SECONDS), **result}, bars(found))


def on_spark(folder: Path) -> dict[str, Held]:
    found = {}
    for name in (NONE, *map(_name, TARGETS_MS), PEAK):
        mine = folder / name
        mine.mkdir(parents=True, exist_ok=True)
        policy = PEAK if name == PEAK else "adaptive"
        options = ("--like", str(folder / NONE / "adaptive.json")) if name == PEAK else OPTIONS["adaptive"]
        target = () if name in (NONE, PEAK) else ("--target-p99", name)
        report = column(policy, one(policy, load(SECONDS), SECONDS, mine, (*options, *_SECOND, *target)))
        found[name] = held(
            list(cycles(mine / f"history-{policy}")), report.p99_ms, report.mean_ms, report.reserved_core_s or 0.0,
            report.nodes_mean or 0.0, report.moves or 0, report.exact,
        )  # fmt: skip
        say(line(name, found[name]))
    return found


def on_sim(scenario: Scenario) -> dict[str, Held]:
    found: dict[str, Held] = {}
    peak: dict[str, float] = {}
    for name in (NONE, *map(_name, TARGETS_MS), PEAK):
        (workload,) = scenario.workloads
        target_ms = None if name in (NONE, PEAK) else float(name)
        topology = replace(workload.topology, target_p99_ms=target_ms)
        policy = with_options(named("adaptive"), {"lend": False, "theta_pct": THETA_PCT})
        if name == PEAK:
            policy = with_shares(named(PEAK), peak)
        decider = PolicyDecider(policy, keep_all=True)
        result = run(Simulator(replace(scenario, workloads=(replace(workload, topology=topology),)), 0), decider)
        timed = [(c.snapshot.at_s, c) for c in decider.cycles]
        if name == NONE:
            peak = {f"{wordcount.NAME}/{o}": share.max_pct for o, share in asked(timed, SECONDS).items()}
        times, cpu = result.complete_time_ms, metered(timed, SECONDS)
        found[name] = held(
            decider.cycles, times.p99, times.mean, cpu.reserved_core_s or 0.0, cpu.nodes_mean or 0.0, result.moves,
            result.lost_rows == 0,
        )  # fmt: skip
    return found


def held(
    seen: Sequence[Cycle], p99_ms: float, mean_ms: float, reserved: float, nodes: float, moves: int, exact: bool
) -> Held:
    times = _times(seen)
    whole_s = sum(cycle_s for cycle_s, _ in times)
    above = {_name(t): _part(times, t) for t in TARGETS_MS}
    said = Counter(r.code.value for c in seen for r in c.plan.reasons if r.code.value.startswith("target-"))
    return Held(
        round(whole_s),
        _part(times, sys.float_info.max),
        above,
        p99_ms,
        mean_ms,
        reserved,
        nodes,
        moves,
        dict(said),
        exact,
    )


def bars(found: dict[str, dict[str, Held]]) -> list[Bar]:
    listed = []
    for engine, runs in found.items():
        listed.append(
            Bar(f"{engine}: runs that are exact", float(sum(h.exact for h in runs.values())), at_least=len(runs))
        )
        fewest_s = min(h.seconds for h in runs.values())
        listed.append(Bar(f"{engine}: seconds that are judged, of the load", fewest_s / SECONDS, at_least=0.9))
        for name in map(_name, TARGETS_MS):
            part = runs[name].reserved_core_s / max(runs[PEAK].reserved_core_s, 1e-9)
            listed.append(Bar(f"{engine}: core-seconds reserved, {name} ms / fixed-peak", part, at_most=1.0))
    if "sim" in found:
        reserved = [found["sim"][_name(t)].reserved_core_s for t in sorted(TARGETS_MS)]
        fewest = min((a / b for a, b in pairwise(reserved)), default=1.0)
        listed.append(Bar("sim: core-seconds reserved, a target / the next longer one", fewest, at_least=0.99))
        for name in map(_name, TARGETS_MS):
            above = found["sim"][name].above[name]
            listed.append(Bar(f"sim: share of seconds above {name} ms", above, at_most=MOST_ABOVE))
    return listed


def show(engine: str, runs: dict[str, Held]) -> None:
    heads = "".join(f"{'> ' + _name(t):>9}" for t in TARGETS_MS)
    say(f"\nTargets for the p99 on {engine}, {SECONDS:g} s")
    say(f"{'target':<12}{heads} {'p99 ms':>9} {'mean ms':>8} {'reserved':>9}")
    for name, found in runs.items():
        say(line(name, found))


def line(name: str, h: Held) -> str:
    above = "".join(f"{part:>9.1%}" for part in h.above.values())
    said = ", ".join(f"{code} {count}" for code, count in h.said.items())
    return (
        f"{name:<12}{above} {h.p99_ms:>9,.0f} {h.mean_ms:>8,.1f} {h.reserved_core_s:>9,.1f}   "
        f"{h.nodes_mean:.2f} nodes, {h.moves} moves{', said: ' if said else ''}{said}"
    )


def _name(target_ms: float) -> str:
    return f"{target_ms:g}"


def _times(seen: Sequence[Cycle]) -> list[tuple[float, float]]:
    """Of each cycle from the first to the last row out, its seconds and its p99: infinite where no row came out, as
    while a query is stopped for a rescale."""
    found = []
    for cycle in seen:
        known = [m.latency_due.p99 for m in cycle.snapshot.topology_metrics if m.latency_due is not None]
        found.append((cycle.snapshot.cycle_s, max(known, default=math.inf)))
    out = [at for at, (_, p99_ms) in enumerate(found) if p99_ms < math.inf]
    return found[out[0] : out[-1] + 1] if out else []


def _part(times: Sequence[tuple[float, float]], target_ms: float) -> float:
    """Of the seconds; 1 where no row came out at all."""
    whole_s = sum(cycle_s for cycle_s, _ in times)
    return round(sum(cycle_s for cycle_s, p99_ms in times if p99_ms > target_ms) / whole_s, 4) if whole_s else 1.0
