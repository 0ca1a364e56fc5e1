"""A node with a CPU quota under overload: its instances share one pool, some within their shares and some above.

First, without the quota, what a row of each operator costs. Then, under the quota: how much of the CPU that instances
use is work, that is their rows at that cost and not waiting and waking up; how often a second each thread gave its
processor up; what each got and what was reserved for it; and for how long it waited for the pool, which is all that
holds it back, because it has no limit of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.model import Instance, InstanceMetrics, Plan
from barograph.testing.local_cluster import LocalCluster, open_local_cluster
from bench._busy_split import busy, wait
from bench._figures import Bar, say

NAME = "pool"
NODE_CPU = 0.5
INSTANCES = {"source": 1, "split": 4, "count": 3}
# One split has more reserved than it can use while rows are dealt out evenly; the other three are above their shares.
RESERVED_PCT = {"source": (8.0,), "split": (12.0, 1.0, 1.0, 1.0), "count": (8.0, 8.0, 8.0)}
COMPILE_S, FREE_S, SETTLE_S, MEASURED_S = 8.0, 5.0, 4.0, 15.0
WORK, WITHIN, WAITS_PCT = 0.8, 0.9, 1.0


@dataclass(frozen=True)
class PoolUse:
    """One instance. row_cpu_s: of a row without the quota; waited_pct: of the time; switches_s: voluntary ones."""

    reserved_pct: float
    used_pct: float
    waited_pct: float
    switches_s: float
    rows: float
    cpu_s: float
    row_cpu_s: float

    @property
    def is_within(self) -> bool:
        """An instance that is about at its share may be above it for a moment, and waits then."""
        return self.used_pct < WITHIN * self.reserved_pct

    @property
    def is_above(self) -> bool:
        return self.used_pct > self.reserved_pct

    @property
    def work_s(self) -> float:
        return min(self.cpu_s, self.rows * self.row_cpu_s)


def work_part(found: Iterable[PoolUse]) -> float:
    """The part of the CPU of all instances that is work; 0 if they used none."""
    both = [(use.work_s, use.cpu_s) for use in found]
    used_s = sum(cpu_s for _, cpu_s in both)
    return sum(work_s for work_s, _ in both) / used_s if used_s > 0.0 else 0.0


def pool_bars(found: Sequence[PoolUse]) -> list[Bar]:
    """Without instances of both kinds the others would say nothing, so that there are such is a bar too."""
    within = [use for use in found if use.is_within]
    return [
        Bar("part of the pool's CPU that is work", work_part(found), at_least=WORK),
        Bar("wait for the pool within a share, % of the time, the longest",
            max((use.waited_pct for use in within), default=0.0), at_most=WAITS_PCT),
        Bar("instances within their shares", len(within), at_least=1),
        Bar("instances above their shares", sum(use.is_above for use in found), at_least=1),
    ]  # fmt: skip


def pool_json(found: Mapping[Instance, PoolUse]) -> dict[str, Any]:
    each = {f"{i.operator}/{i.index}": {k: round(v, 6) for k, v in asdict(use).items()} for i, use in found.items()}
    return {"work_part": round(work_part(found.values()), 3), "instances": each}


def in_a_pool() -> dict[Instance, PoolUse]:
    """Of each instance of a query on a node of its own. The quota comes when the code is compiled."""
    reserved = {Instance(NAME, op, k): pct for op, shares in RESERVED_PCT.items() for k, pct in enumerate(shares)}
    with (
        open_local_cluster(ClusterSettings(nodes=1, node_cpu=NODE_CPU, seats=8)) as stage,
        stage.query(NAME, 1_000_000, INSTANCES, epoch_s=600.0, workload=busy()) as counting,
    ):
        wait(counting, COMPILE_S)
        stage.engine.observe(NAME)
        wait(counting, FREE_S)
        free = stage.engine.observe(NAME).metrics
        costs = {op: _row_cpu_s(free.of_operator(NAME, op)) for op in INSTANCES}
        outcome = stage.engine.apply(Plan(shares_pct=reserved))
        assert outcome.ok and not outcome.left_out, outcome
        stage.cluster.fence()
        # Executors read their quota every other second.
        counting.settle(lambda: all(0.0 < e.group_cores <= NODE_CPU for e in stage.engine.live_executors))
        wait(counting, SETTLE_S)
        stage.engine.observe(NAME)
        before = _switches(stage, reserved)
        wait(counting, MEASURED_S)
        now = stage.engine.observe(NAME)
        after = _switches(stage, reserved)
        found = {}
        for instance, pct in reserved.items():
            row = now.metrics.row(instance)
            found[instance] = PoolUse(
                pct, 100.0 * row.cpu_s / now.cycle_s, 100.0 * row.throttled_s / now.cycle_s,
                (after[instance] - before[instance]) / now.cycle_s, row.executed, row.cpu_s, costs[instance.operator],
            )  # fmt: skip
            say(f"{instance}: {found[instance]}")
        return found


def _row_cpu_s(of: InstanceMetrics) -> float:
    assert of.executed > 0, "an operator has executed nothing"
    return of.cpu_s / of.executed


def _switches(stage: LocalCluster, instances: Iterable[Instance]) -> dict[Instance, int]:
    """How often each instance's thread has given its processor up so far."""
    epoch = stage.engine.present(NAME)
    assert epoch is not None
    lives = {i: epoch.lives[i] for i in instances}
    return {i: switches_in(Path(f"/proc/{x.pid}/task/{x.tid}/status").read_text()) for i, x in lives.items()}


def switches_in(status: str) -> int:
    """Voluntary context switches, from the text of a thread's status."""
    (line,) = (line for line in status.splitlines() if line.startswith("voluntary_ctxt_switches:"))
    return int(line.split(":")[1])
