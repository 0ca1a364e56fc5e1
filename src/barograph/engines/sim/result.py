"""The result of a run as numbers. docs/simulator.md explains each one."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from barograph.engines.degraded import degraded_s
from barograph.engines.sim.grains.complete_times import CompleteTimes
from barograph.engines.sim.grains.due import DueTimes
from barograph.engines.sim.priority_result import PriorityResult, priority_result
from barograph.model import Latency, Snapshot

if TYPE_CHECKING:
    from barograph.engines.sim.engine import Simulator


@dataclass(frozen=True, slots=True)
class CompleteTime:
    mean: float
    p50: float
    p99: float
    max: float

    @staticmethod
    def of(times: CompleteTimes) -> "CompleteTime":
        seconds = (times.mean_s, times.quantile_s(0.5), times.quantile_s(0.99), times.max_s)
        return CompleteTime(*(round(1e3 * s, 3) for s in seconds))


@dataclass(frozen=True, slots=True)
class TopologyResult:
    name: str
    complete_time_ms: CompleteTime
    from_read_ms: CompleteTime
    completed_rows: float
    throughput_rows_per_s: float
    source_rows_per_s: float
    late_rows: float
    failed_rows: float
    replayed_rows: float
    unread_rows: float
    stopped_s: float
    starved_s: float
    degraded_s: dict[int, int] | None


@dataclass(frozen=True, slots=True)
class TrafficResult:
    """Rows between instances on different nodes, and in different workers; as a share of all rows sent."""

    inter_node_rows_per_s: float
    inter_worker_rows_per_s: float
    inter_node_share: float
    inter_worker_share: float


@dataclass(frozen=True, slots=True)
class CycleResult:
    """One cycle of a run, all topologies together. Mean times are None where no row ended."""

    at_s: float
    completed_rows: float
    complete_time_ms: float | None
    from_read_ms: float | None
    inter_node_rows_per_s: float


@dataclass(frozen=True)
class OperatorSeries:
    """One operator over the cycles of a run; each list has one value for each cycle.

    reserved_pct, limit_pct, used_pct: of all its instances together, in per cent of a core. The limit is None where
    nothing limits it.
    """

    at_s: list[float] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)
    predicted_rows_per_s: list[float] = field(default_factory=list)
    arrived_rows_per_s: list[float] = field(default_factory=list)
    reserved_pct: list[float] = field(default_factory=list)
    limit_pct: list[float | None] = field(default_factory=list)
    used_pct: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Result:
    scenario: str
    seed: int
    grain: str
    calibrated: bool
    simulated_s: float
    complete_time_ms: CompleteTime
    from_read_ms: CompleteTime
    completed_rows: float
    throughput_rows_per_s: float
    source_rows_per_s: float
    late_rows: float
    lost_rows: float
    failed_rows: float
    replayed_rows: float
    cpu_reserved_s: float
    cpu_limit_s: float
    cpu_used_s: float
    memory_reserved_mb: float
    nodes_mean: float
    nodes_min: int
    nodes_max: int
    workers_mean: float
    workers_max: int
    traffic: TrafficResult
    moves: int
    reconfigurations: int
    decisions: int
    refused: int
    topologies: tuple[TopologyResult, ...]
    trace_sha256: str
    priority: PriorityResult | None = None
    over_time: tuple[CycleResult, ...] = ()
    operators: Mapping[str, OperatorSeries] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def result(engine: "Simulator", trace_sha256: str) -> Result:
    totals, now_s = engine.totals, engine.now_s
    timeout_s = engine.scenario.timeout_s
    all_due, all_read = CompleteTimes(timeout_s), CompleteTimes(timeout_s)
    topologies = []
    for t, topology in enumerate(engine.topologies):
        due, read = totals.times(t)
        completed = read.count
        ages, rows = engine.grain.unfinished(t, now_s)
        due.add(ages, rows)  # rows that have not ended count with their age; without them times would look too good
        all_due.merge(due)
        all_read.merge(read)
        topologies.append(
            TopologyResult(
                topology.name,
                CompleteTime.of(due),
                CompleteTime.of(read),
                round(completed, 3),
                round(completed / now_s, 3),
                round(completed / _rows_at_sinks(engine, t) / now_s, 3),
                round(due.late, 3),
                round(totals.failed_rows[t], 3),
                round(totals.replayed_rows[t], 3),
                round(float(rows.sum()), 3),
                round(totals.stopped_s[t], 3),
                round(totals.starved_s[t], 3),
                _degraded_s(engine, t),
            )
        )
    return Result(
        scenario=engine.scenario.name,
        seed=engine.seed,
        grain=engine.grain_name,
        calibrated=engine.calibration.calibrated,
        simulated_s=round(now_s, 3),
        complete_time_ms=CompleteTime.of(all_due),
        from_read_ms=CompleteTime.of(all_read),
        completed_rows=round(all_read.count, 3),
        throughput_rows_per_s=round(all_read.count / now_s, 3),
        source_rows_per_s=round(sum(t.source_rows_per_s for t in topologies), 3),
        late_rows=round(all_due.late, 3),
        lost_rows=round(engine.grain.unaccounted(now_s), 3),
        failed_rows=round(sum(totals.failed_rows), 3),
        replayed_rows=round(sum(totals.replayed_rows), 3),
        cpu_reserved_s=round(totals.cpu_reserved_s, 3),
        cpu_limit_s=round(totals.cpu_limit_s, 3),
        cpu_used_s=round(totals.cpu_used_s, 3),
        memory_reserved_mb=round(totals.memory_mb_s / now_s, 3),
        nodes_mean=round(totals.node_s / now_s, 3),
        nodes_min=totals.nodes_min or 0,
        nodes_max=totals.nodes_max,
        workers_mean=round(totals.worker_s / now_s, 3),
        workers_max=totals.workers_max,
        traffic=TrafficResult(
            round(totals.between_nodes_rows / now_s, 3),
            round(totals.between_workers_rows / now_s, 3),
            round(totals.between_nodes_rows / max(1.0, totals.sent_rows), 4),
            round(totals.between_workers_rows / max(1.0, totals.sent_rows), 4),
        ),
        moves=totals.moves,
        reconfigurations=totals.reconfigurations,
        decisions=totals.decisions,
        refused=totals.refused,
        topologies=tuple(topologies),
        trace_sha256=trace_sha256,
        priority=priority_result(engine, {t.name: t.complete_time_ms.mean / 1000.0 for t in topologies}),
        over_time=tuple(totals.over_time),
    )


def cycle_result(seen: Snapshot, between_nodes_rows: float) -> CycleResult:
    """What was seen of a cycle. between_nodes_rows: of this cycle."""
    ended = [t for t in seen.topology_metrics if t.completed_rows]
    rows = sum(t.completed_rows for t in ended)

    def mean_ms(times: Iterable[Latency | None]) -> float | None:
        total = sum(t.completed_rows * x.mean for t, x in zip(ended, times, strict=True) if x is not None)
        return round(total / rows, 3) if rows else None

    return CycleResult(
        at_s=round(seen.at_s, 3),
        completed_rows=round(rows, 3),
        complete_time_ms=mean_ms(t.latency_due for t in ended),
        from_read_ms=mean_ms(t.latency_read for t in ended),
        inter_node_rows_per_s=round(between_nodes_rows / seen.cycle_s, 3),
    )


def _rows_at_sinks(engine: "Simulator", t: int) -> float:
    """How many rows at the sinks one row of the topology's sources stands for, on the mean of what they read."""
    layout = engine.layout
    mine = [part.index for part in layout.operators if part.topology == t and part.is_source]
    read = engine.grain.read_rows()[mine]
    gain = np.array(layout.gain)[mine]
    weights = read if read.sum() > 0 else np.ones(len(mine))
    return float(np.average(gain, weights=weights)) or 1.0


def _degraded_s(engine: "Simulator", t: int) -> dict[int, int] | None:
    seconds = int(engine.now_s + 1e-9)
    out = engine.totals.output_by_second[t]
    due = np.zeros(seconds)
    for part in engine.layout.operators:
        if part.topology == t and part.work.load is not None:
            times = DueTimes(part.work.load, [1.0], engine.scenario.duration_s)
            counts = np.array([times.count(float(s)) for s in range(seconds + 1)])
            due += np.diff(counts) * engine.layout.gain[part.index]
    return degraded_s([out.get(s, 0.0) for s in range(seconds)], due.tolist(), engine.totals.stops[t])
