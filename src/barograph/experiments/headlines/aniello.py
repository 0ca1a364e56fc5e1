"""Aniello et al.: latency and inter-node traffic under default, offline and online (figures 3 to 10).

The figures' curves are lost in our copy of the paper; what its text states is compared. Latency counts from the moment
the source reads a row to the ack, since the paper's sources make their rows themselves. Means are over the cycles in
which a run has settled: "as soon as an initial transient period needed to collect performance indices is elapsed".

Where alpha is best depends on how fast the threads are that send for workers, which the paper does not state; the
scenario says what was chosen and why. So that headline shows that the paper's cause has the paper's effect, no more.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from barograph.engines.sim import CycleResult, Result
from barograph.experiments.headlines.headline import POINTS, Case, Headline, Paper, holds, in_order, within_factor

DEFAULT, OFFLINE, ONLINE = "even", "offline", "online"
POLICIES = (DEFAULT, OFFLINE, ONLINE)
BELOW_PCT = (20.0, 30.0)  # "an improvement oscillating between 20% and 30%"
STAGES, REPLICATIONS = (3, 4, 5, 6, 7), (2, 4)
ALPHAS = ("0", "0.05", "0.1", "0.15", "0.2")
SEEDS, ALPHA_SEEDS = (0, 1, 2), (0, 1, 2, 3, 4, 5)
SETTLED_S = 70.0  # online's change at 30 or 40 s and the silence after it are over, and so is the cycle they end in
OVER_TIME, DEBS = "chain-over-time", "debs-2013"
RESCHEDULED_S, SILENT_S = 40.0, 10.0

Results = Mapping[str, Result]


def _key(scenario: str, policy: str, seed: int) -> str:
    return f"{scenario} {policy} {seed}"


def _chain(stages: int, replication: int) -> str:
    return f"chain-stages/s{stages}-r{replication}"


def _cases() -> Iterable[Case]:
    chains = [_chain(s, r) for r in REPLICATIONS for s in STAGES]
    wanted: list[tuple[str, str, Sequence[int]]] = [
        (name, policy, SEEDS) for name in (OVER_TIME, *chains, DEBS) for policy in POLICIES
    ]
    for alpha in ALPHAS:
        wanted += [(f"chain-alpha/alpha-{alpha}", ONLINE, ALPHA_SEEDS), (f"chain-alpha/alpha-{alpha}", OFFLINE, SEEDS)]
    for scenario, policy, seeds in wanted:
        for seed in seeds:
            yield Case(_key(scenario, policy, seed), scenario, policy, seed=seed)


def mean_latency_ms(cycles: Iterable[CycleResult]) -> float:
    """Over the rows that ended in these cycles."""
    seen = [(c.completed_rows, c.from_read_ms) for c in cycles if c.from_read_ms is not None]
    return sum(rows * ms for rows, ms in seen) / sum(rows for rows, _ in seen)


def settled(result: Result) -> tuple[float, float]:
    """Mean latency in ms and inter-node rows a second once the run has settled."""
    cycles = [c for c in result.over_time if c.at_s > SETTLED_S]
    return mean_latency_ms(cycles), sum(c.inter_node_rows_per_s for c in cycles) / len(cycles)


def _means(results: Results, scenario: str, policy: str, seeds: Sequence[int]) -> tuple[float, float]:
    """Of ``settled``, over the seeds."""
    runs = [settled(results[_key(scenario, policy, seed)]) for seed in seeds]
    return sum(ms for ms, _ in runs) / len(runs), sum(rows for _, rows in runs) / len(runs)


def _below_pct(value: float, default: float) -> float:
    return 100.0 * (1.0 - value / default)


def _ordered(what: str, results: Results, scenario: str) -> list[Headline]:
    """Online below offline below default, in both measures."""
    found = {policy: _means(results, scenario, policy, SEEDS) for policy in POLICIES}
    order = (ONLINE, OFFLINE, DEFAULT)
    return [
        in_order(f"{what}: latency, ms", {policy: ms for policy, (ms, _) in found.items()}, order),
        in_order(f"{what}: inter-node rows/s", {policy: rows for policy, (_, rows) in found.items()}, order),
    ]


def _below_default(what: str, results: Results, scenarios: Sequence[str]) -> list[Headline]:
    """How far online is below default, on the mean over the scenarios."""
    low, high = BELOW_PCT
    found = []
    for measure, name in enumerate(("latency", "inter-node rows/s")):
        pairs = [[_means(results, s, policy, SEEDS)[measure] for policy in (ONLINE, DEFAULT)] for s in scenarios]
        ours = sum(_below_pct(*pair) for pair in pairs) / len(pairs)
        met = low - POINTS <= ours <= high + POINTS
        found.append(holds(f"{what}: online's {name} below default's", f"{low:g} to {high:g} %", f"{ours:.1f} %", met))
    return found


def _over_time(results: Results) -> list[Headline]:
    before = {
        policy: sum(
            mean_latency_ms(c for c in results[_key(OVER_TIME, policy, seed)].over_time if c.at_s <= RESCHEDULED_S)
            for seed in SEEDS
        )
        / len(SEEDS)
        for policy in POLICIES
    }
    runs = [results[_key(OVER_TIME, ONLINE, seed)] for seed in SEEDS]
    changes = [run.reconfigurations for run in runs]
    usual_s = results[_key(OVER_TIME, DEFAULT, SEEDS[0])].topologies[0].stopped_s  # at the ends of epochs
    silent_s = sum(run.topologies[0].stopped_s - usual_s for run in runs) / len(runs)
    same = abs(_below_pct(before[ONLINE], before[DEFAULT])) < 1.0
    return [
        holds(
            f"over time: latency before {RESCHEDULED_S:g} s",
            "online as default, offline lower",
            ", ".join(f"{policy} {before[policy]:.2f} ms" for policy in POLICIES),
            same and before[OFFLINE] < before[DEFAULT],
        ),
        holds("over time: how often online reschedules", "once", str(changes), changes == [1] * len(runs)),
        within_factor("over time: without output while online reschedules", SILENT_S, silent_s, "s"),
        *_ordered("over time: after it", results, OVER_TIME),
        *_below_default("over time: after it", results, [OVER_TIME]),
    ]


def _by_stages(results: Results) -> list[Headline]:
    found: list[Headline] = []
    offline_below: dict[int, float] = {}
    for replication in REPLICATIONS:
        names = [_chain(stages, replication) for stages in STAGES]
        for stages, name in zip(STAGES, names, strict=True):
            found += _ordered(f"{stages} stages x {replication}", results, name)
        found += _below_default(f"replication {replication}, mean of 3 to 7 stages", results, names)
        pairs = [[_means(results, name, policy, SEEDS)[0] for policy in (OFFLINE, DEFAULT)] for name in names]
        offline_below[replication] = sum(_below_pct(*pair) for pair in pairs) / len(pairs)
        for policy in POLICIES:
            rising = [_means(results, name, policy, SEEDS)[0] for name in names]
            met = all(a < b for a, b in pairwise(rising))
            ours = ", ".join(f"{ms:.1f}" for ms in rising)
            found.append(holds(f"replication {replication}: {policy} by stages, ms", "rises with stages", ours, met))
    ours = ", ".join(f"replication {r}: {pct:.1f} % below default" for r, pct in offline_below.items())
    less = offline_below[4] < offline_below[2]
    return [*found, holds("offline with more replication", "becomes less effective", ours, less)]


def _by_alpha(results: Results) -> list[Headline]:
    online = [_means(results, f"chain-alpha/alpha-{a}", ONLINE, ALPHA_SEEDS) for a in ALPHAS]
    offline = [_means(results, f"chain-alpha/alpha-{a}", OFFLINE, SEEDS) for a in ALPHAS]
    latency, traffic = [ms for ms, _ in online], [rows for _, rows in online]
    best = ALPHAS[latency.index(min(latency))]
    beyond = latency[ALPHAS.index("0.05") :]
    improves = all(b <= a for pair in pairwise(offline) for a, b in zip(*pair, strict=True))
    return [
        holds("alpha: where online's latency is best", "0.05", f"{best} ({_row(latency, '.2f')} ms)", best == "0.05"),
        holds(
            "alpha: online's latency beyond 0.05",
            "larger",
            f"{_row(beyond, '.2f')} ms",
            all(a < b for a, b in pairwise(beyond)),
        ),
        holds(
            "alpha: online's inter-node rows/s",
            "keeps decreasing",
            _row(traffic, ".0f"),
            all(a > b for a, b in pairwise(traffic)),
        ),
        holds(
            "alpha: offline, latency and traffic",
            "slightly keeps improving",
            f"{_row((ms for ms, _ in offline), '.2f')} ms; {_row((rows for _, rows in offline), '.0f')} rows/s",
            improves and offline[-1] < offline[0],
        ),
    ]


def _row(values: Iterable[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def judge(results: Results) -> Sequence[Headline]:
    return [
        *_over_time(results),
        *_by_stages(results),
        *_by_alpha(results),
        *_ordered("DEBS 2013", results, DEBS),
        *_below_default("DEBS 2013", results, [DEBS]),
    ]


PAPER = Paper("aniello", "Aniello et al., Adaptive online scheduling in Storm", tuple(_cases()), judge)
