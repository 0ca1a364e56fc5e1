"""The five columns of the papers' comparison, one after the other: the same load under each policy on real Spark.

Each runs in its own process, ``barograph run`` as a user calls it. adaptive does not lend here, so that its shares are
limits as in the other policies and it can use no more than it reserves. Each policy uses its own way to move.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._figures import Bar, say

# Epochs have Spark's default length, for all policies.
CYCLE_S, THETA_PCT, EPOCH_S, NODE_CPU, NODES = 2.0, 2.0, 300.0, 0.6, 3
WORDS_PER_LINE, DRAIN_S = 8, 120.0  # rows that are still unread after the drain count as late
PARALLELISM = {"source": 2, "split": 2, "count": 3}
# CPU cost of the papers' operators, so that CPU shares decide the result and not Spark's own threads.
BUSY_US = {"split": 300, "count": 40}
LIKE = "adaptive"
OPTIONS: dict[str, tuple[str, ...]] = {
    "adaptive": ("--option", "lend=false", "--theta", f"{THETA_PCT:g}"),
    "liu": ("--theta", f"{THETA_PCT:g}"),
    "fixed-equal": (),
    "fixed-peak": (),
    "spark": (),
}
HEAD = (
    f"{'policy':<12} {'late':>8} {'mean ms':>9} {'p99 ms':>8} {'max ms':>8} {'reserved':>9} {'used':>7} {'nodes':>6} "
    f"{'moves':>5} {'resc.':>5} {'pause s':>8} {'lost':>5} {'twice':>5} {'undrained':>9}"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One run. None is unknown. late_rows: includes rows of lines that were still unread when the drain ended; complete
    times do not include them. exact: every row that was read was counted once."""

    policy: str
    late_rows: int
    mean_ms: float
    p99_ms: float
    max_ms: float
    reserved_core_s: float | None
    used_core_s: float | None
    nodes_mean: float | None
    moves: int | None
    rescales: int
    longest_pause_s: float
    lost: int
    counted_twice: int
    undrained_lines: int

    @property
    def exact(self) -> bool:
        return self.lost == 0 and self.counted_twice == 0


def columns(load: str, seconds: float, folder: Path) -> dict[str, Column]:
    """All five; each run's JSON and history stay in the folder."""
    found: dict[str, Column] = {}
    for policy, options in OPTIONS.items():
        like = ("--like", str(folder / f"{LIKE}.json")) if policy.startswith("fixed-") else ()
        began_s = time.monotonic()
        found[policy] = column(policy, one(policy, load, seconds, folder, (*options, *like)))
        say(f"{line(found[policy])}   ({time.monotonic() - began_s:.0f} s)")
    return found


def one(policy: str, load: str, seconds: float, folder: Path, options: tuple[str, ...]) -> dict[str, Any]:
    """A run's report. Exit code 1 has a report too, of a run that was not exact; other codes are failures."""
    busy = ",".join(f"{o}={us}" for o, us in BUSY_US.items())
    instances = ",".join(f"{o}={n}" for o, n in PARALLELISM.items())
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--policy", policy, "--load", load,
        "--seconds", f"{seconds:g}", "--nodes", str(NODES), "--node-cpu", f"{NODE_CPU:g}", "--cycle", f"{CYCLE_S:g}s",
        "--epoch", f"{EPOCH_S:g}s", "--busy", busy, "--parallelism", instances, "--drain", f"{DRAIN_S:g}s",
        "--recovery", "off", "--release-after", "never", "--format", "json",
        "--history", str(folder / f"history-{policy}"), *options,
    ]  # fmt: skip
    say(f"-- {policy}")
    with (folder / f"{policy}.log").open("wb") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, env=dict(os.environ), check=False)
    text = done.stdout.decode()
    (folder / f"{policy}.json").write_text(text, encoding="utf-8")
    if done.returncode not in (0, 1) or not text.startswith("{"):
        said = (folder / f"{policy}.log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"the run under {policy} failed:\n{said[-2000:]}")
    report: dict[str, Any] = json.loads(text)
    return report


def column(policy: str, report: dict[str, Any]) -> Column:
    rows, due, cpu = report["rows"], report["latency_ms"]["due"], report["cpu_core_s"]
    late = rows["late"] + WORDS_PER_LINE * report["lines"]["undrained"]
    return Column(
        policy, late, due["mean"], due["p99"], due["max"], cpu["reserved"], cpu["used"],
        report["nodes_used"]["mean"], report["moves"], report["rescales"], report["longest_pause_s"], rows["lost"],
        rows["counted_twice"], report["lines"]["undrained"],
    )  # fmt: skip


def bars(found: dict[str, Column]) -> list[Bar]:
    """What is promised of adaptive, and of all policies: no row lost, none counted twice."""
    ours, equal, peak = found["adaptive"], found["fixed-equal"], found["fixed-peak"]
    given = (ours.reserved_core_s or 0.0) / (peak.reserved_core_s or 1.0)
    return [
        Bar("late rows of adaptive", float(ours.late_rows), at_most=0.0),
        Bar("mean complete time, adaptive / fixed-peak", ours.mean_ms / peak.mean_ms, at_most=1.5),
        Bar("mean complete time, fixed-equal / adaptive", equal.mean_ms / ours.mean_ms, at_least=28.0),
        Bar("core-seconds reserved, adaptive / fixed-peak", given, at_most=0.75),
        Bar("runs in which every row was counted once", float(sum(c.exact for c in found.values())), at_least=5.0),
    ]


def line(c: Column) -> str:
    return (
        f"{c.policy:<12} {c.late_rows:>8,} {c.mean_ms:>9,.1f} {c.p99_ms:>8,.0f} {c.max_ms:>8,.0f} "
        f"{_told(c.reserved_core_s):>9} {_told(c.used_core_s):>7} {_told(c.nodes_mean):>6} "
        f"{_told(c.moves, 0):>5} {c.rescales:>5} {c.longest_pause_s:>8.2f} {c.lost:>5} {c.counted_twice:>5} "
        f"{c.undrained_lines:>9,}"
    )


def show(title: str, found: dict[str, Column]) -> None:
    say(f"\n{title}\n{HEAD}")
    for c in found.values():
        say(line(c))


def _told(value: float | None, places: int = 1) -> str:
    return "-" if value is None else f"{value:,.{places}f}"
