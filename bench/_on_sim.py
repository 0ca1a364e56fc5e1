"""The same five columns in the simulator, and whether its results agree with Spark's.

The cost of a row for each operator, and the distribution of words over the instances of count, are taken from
adaptive's run on Spark; the cost of changes is the simulator's calibration. Nothing else is fitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Simulator, read_calibration, run
from barograph.engines.sim.scenario.definition import Flow, Scenario, SimulatedTopology, Work
from barograph.experiments.figures.asked_shares import OperatorShare, asked
from barograph.experiments.figures.run_meter import metered
from barograph.experiments.steering.fixed_shares import equal_shares
from barograph.history.read import cycles
from barograph.model import Cycle, Load, Node
from barograph.model.loads.shapes import Ramp
from barograph.policy.definition import with_options, with_shares
from barograph.policy.registry import named
from barograph.workloads import wordcount
from bench._columns import (
    CYCLE_S,
    DRAIN_S,
    EPOCH_S,
    LIKE,
    NODE_CPU,
    NODES,
    OPTIONS,
    PARALLELISM,
    THETA_PCT,
    WORDS_PER_LINE,
    Column,
)
from bench._figures import say

_CORE_PCT = 100.0
CPU_WITHIN, TIME_WITHIN = 0.10, 2.0


def closed(shape: str, seconds: float) -> Load:
    """The load up to ``seconds``, and 0 after that: a jump takes a millisecond."""
    points: list[tuple[float, float]] = []
    for piece in Load.parse(shape).segments(seconds):
        points += [(piece.start_s, piece.rate_start), (piece.end_s - 1e-3, piece.rate_end)]
    return Load(shape, Ramp((*points, (seconds, 0.0))))


def rehearsed(shape: str, seconds: float, folder: Path) -> dict[str, Column]:
    """All five policies, with the costs measured in adaptive's recorded run."""
    scenario = scenario_of(shape, seconds, list(cycles(folder / f"history-{LIKE}")))
    found: dict[str, Column] = {}
    teacher: Taught | None = None
    for policy in OPTIONS:
        found[policy], taught = _one(scenario, policy, seconds, teacher)
        teacher = taught if policy == LIKE else teacher
    return found


@dataclass(frozen=True, slots=True)
class Taught:
    """The values that baselines take from adaptive's run."""

    reserved_core_s: float
    shares: Mapping[str, OperatorShare]


def scenario_of(shape: str, seconds: float, seen: list[Cycle]) -> Scenario:
    return scenario_with(shape, seconds, *work_of(seen))


def scenario_with(shape: str, seconds: float, cost_s: Mapping[str, float], parts: tuple[float, ...]) -> Scenario:
    """cost_s: of a row, by operator. parts: of the words, by instance of count."""
    load = closed(shape, seconds)
    topology = wordcount.topology(PARALLELISM)
    work = {o.name: Work(cost_s[o.name], load=load if o.source else None) for o in topology.operators}
    flow = (Flow(), Flow(float(WORDS_PER_LINE), keys=0, skew=exponent(parts)))
    nodes = tuple(Node(f"node-{k + 1}", NODE_CPU * _CORE_PCT, 1, 8) for k in range(NODES))
    return Scenario(
        "regular", "the bench's load", nodes, (SimulatedTopology(topology, work, flow),), seconds + DRAIN_S,
        cycle_s=CYCLE_S, epoch_s=EPOCH_S, step_s=0.05,
    )  # fmt: skip


def work_of(seen: list[Cycle]) -> tuple[dict[str, float], tuple[float, ...]]:
    """CPU seconds per row of each operator, and the part of the words that each instance of count got."""
    cpu_s = dict.fromkeys(PARALLELISM, 0.0)
    rows = dict.fromkeys(PARALLELISM, 0.0)
    counted = [0.0] * PARALLELISM["count"]
    for cycle in seen:
        metrics = cycle.snapshot.metrics
        for position, instance in enumerate(metrics.instances):
            cpu_s[instance.operator] += float(metrics.columns["cpu_s"][position])
            rows[instance.operator] += float(metrics.columns["executed"][position])
            if instance.operator == "count":
                counted[instance.index] += float(metrics.columns["executed"][position])
    words = sum(counted) or 1.0
    return {o: cpu_s[o] / max(rows[o], 1.0) for o in PARALLELISM}, tuple(n / words for n in counted)


def exponent(parts: tuple[float, ...]) -> float:
    """The Zipf exponent for which the largest of as many parts equals the largest of these."""
    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        if 1.0 / sum((k + 1) ** -middle for k in range(len(parts))) < max(parts):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _one(scenario: Scenario, policy: str, seconds: float, teacher: Taught | None) -> tuple[Column, Taught]:
    found = named(policy)
    workers = found.workers_per_node or 1
    scenario = replace(scenario, nodes=tuple(replace(n, slots=workers) for n in scenario.nodes))
    if policy == LIKE:
        found = with_options(found, {"lend": False, "theta_pct": THETA_PCT})
    elif policy == "liu":
        found = with_options(found, {"theta_pct": THETA_PCT})
    elif teacher is not None and policy.startswith("fixed-"):
        shares: Mapping[str, float] = {o: s.max_pct for o, s in teacher.shares.items()}
        if policy == "fixed-equal":
            means = {o: s.mean_pct for o, s in teacher.shares.items()}
            shares = equal_shares(means, PARALLELISM, teacher.reserved_core_s, seconds)
        found = with_shares(found, {f"{wordcount.NAME}/{o}": share for o, share in shares.items()})
    decider = PolicyDecider(found, keep_all=True)
    calibration = read_calibration()
    result = run(Simulator(scenario, 0, calibration), decider)
    cycles = [(c.snapshot.at_s, c) for c in decider.cycles]
    cpu = metered(cycles, seconds)
    times = result.complete_time_ms
    (topology,) = result.topologies
    column = Column(
        policy, round(result.late_rows), times.mean, times.p99, times.max, cpu.reserved_core_s, result.cpu_used_s,
        result.nodes_mean, result.moves, 0, topology.stopped_s, round(result.lost_rows), 0,
        round(topology.unread_rows / WORDS_PER_LINE),
    )  # fmt: skip
    return column, Taught(cpu.reserved_core_s or 0.0, asked(cycles, seconds))


@dataclass(frozen=True, slots=True)
class Agreement:
    """One comparison of both engines. why: if they differ."""

    question: str
    spark: str
    sim: str
    agree: bool
    why: str = ""


def agreement(on_spark: Mapping[str, Column], on_sim: Mapping[str, Column]) -> list[Agreement]:
    """Same order by mean complete time; CPU-seconds within 10 %; mean complete time within a factor of 2."""
    spark, sim = (" < ".join(sorted(found, key=lambda p: found[p].mean_ms)) for found in (on_spark, on_sim))
    turned = _turned(on_spark, on_sim)
    found = [Agreement("policies by mean complete time", spark, sim, not turned, ", ".join(turned))]
    for policy, real in on_spark.items():
        simulated = on_sim[policy]
        real_s, sim_s = real.reserved_core_s or 0.0, simulated.reserved_core_s or 0.0
        near = abs(sim_s - real_s) <= CPU_WITHIN * real_s
        found.append(
            Agreement(f"{policy}: core-s reserved", f"{real_s:.1f}", f"{sim_s:.1f}", near, "" if near else _CPU)
        )
        times = max(real.mean_ms, simulated.mean_ms) / max(1e-9, min(real.mean_ms, simulated.mean_ms))
        near = times <= TIME_WITHIN
        why = "" if near else _why_time(real, simulated)
        found.append(Agreement(f"{policy}: mean ms", f"{real.mean_ms:.1f}", f"{simulated.mean_ms:.1f}", near, why))
    return found


def _turned(a: Mapping[str, Column], b: Mapping[str, Column]) -> list[str]:
    """Pairs of policies in opposite order, except those that are within a factor of 2 in one of the engines."""
    return [
        f"{q} and {p} change places"
        for p in a
        for q in a
        if a[p].mean_ms > TIME_WITHIN * a[q].mean_ms and b[q].mean_ms > TIME_WITHIN * b[p].mean_ms
    ]


_CPU = (
    "on Spark an instance also uses CPU while it waits (polling, its epoch's commit), and the cost of a row varies, "
    "which shares follow; in the simulator a row costs the same at any load"
)


def _why_time(real: Column, simulated: Column) -> str:
    if real.mean_ms > simulated.mean_ms:
        return (
            f"Spark paused for up to {real.longest_pause_s:.1f} s at once, the simulator for "
            f"{simulated.longest_pause_s:.1f} s in all; a share is a quota per period on Spark, and threads of the "
            "network, the collector and the compiler share its nodes; none of these is modelled"
        )
    return "in the simulator every row has the mean cost; on Spark rows of a backlog are batched and cost less"


def show_agreement(found: list[Agreement]) -> None:
    say("\nComparison of the two engines")
    for a in found:
        say(f"{'ok ' if a.agree else 'GAP'} {a.question:<32} Spark {a.spark:<12} simulator {a.sim}")
        if a.why:
            say(f"    {a.why}")
