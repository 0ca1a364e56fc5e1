"""Everything that instances, executors and topologies have done so far, at one moment, and the difference of two such
moments as the metrics of a cycle.

It measures nothing and decides nothing. Totals never fall, so each observer takes the difference to the totals it saw
last and takes nothing from another. Only instances that exist now are included: what an instance did that a rescale has
removed since is in no later cycle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from barograph.engines.spark.bridge.latency_totals import CLOCKS, NO_LATENCY, LatencyTotals
from barograph.engines.spark.bridge.layout import TopologyLayout
from barograph.engines.spark.bridge.message import Message, Whole
from barograph.model import EdgeTraffic, Metrics, NodeMetrics, TopologyMetrics

_S, _MS = 1e-9, 1e-3
METERS = (
    "arrived", "arrived_known", "executed", "emitted", "pending", "cpu_ns", "busy_ns", "idle_ns", "blocked_ns",
    "throttled_ns", "held_ms", "age_ms",
)  # fmt: skip
_RISING = ("arrived", "executed", "emitted", "cpu_ns", "busy_ns", "idle_ns", "blocked_ns", "throttled_ns")
_NOTHING: Whole = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ProcessTotals:
    """An executor's process: CPU since it started, memory now, time since its last report."""

    cpu_ns: int
    resident_bytes: int
    age_s: float


@dataclass(frozen=True, eq=False)
class RunningTotals:
    """At ``at_s`` of the engine's clock. Columns and traffic are in the order of ``layouts``."""

    at_s: float
    layouts: tuple[TopologyLayout, ...] = ()
    columns: Mapping[str, Whole] = field(default_factory=lambda: dict.fromkeys(METERS, _NOTHING))
    traffic: Whole = field(default_factory=lambda: _NOTHING)
    executors: Mapping[str, ProcessTotals] = field(default_factory=dict)
    latency: Mapping[int, LatencyTotals] = field(default_factory=dict)

    @cached_property
    def ids(self) -> Whole:
        return np.concatenate([layout.ids for layout in self.layouts]) if self.layouts else _NOTHING

    @cached_property
    def starts(self) -> dict[int, tuple[int, int]]:
        """Topology id -> where its instances and its traffic begin."""
        found, instance, count = {}, 0, 0
        for layout in self.layouts:
            found[layout.id] = instance, count
            instance += len(layout.ids)
            count += layout.counts
        return found

    @cached_property
    def by_id(self) -> dict[int, TopologyLayout]:
        return {layout.id: layout for layout in self.layouts}

    def block(self, topology: int, source: str, target: str) -> tuple[Whole, Whole, Whole] | None:
        """Ids of the senders, ids of the receivers, and the matrix of rows sent; None where there is no such edge."""
        layout = self.by_id.get(topology)
        block = next((b for b in layout.blocks if (b.source, b.target) == (source, target)), None) if layout else None
        if layout is None or block is None:
            return None
        start = self.starts[topology][1]
        counts = self.traffic[start + block.counts.start : start + block.counts.stop]
        return layout.ids[block.senders], layout.ids[block.receivers], counts.reshape(block.shape)


def read_totals(
    message: Message,
    at_s: float,
    layouts: tuple[TopologyLayout, ...],
    executors: Iterable[str],
    latency: Mapping[int, LatencyTotals],
) -> RunningTotals:
    """executors: ids, in the plug-in's order."""
    processes = zip(
        message.whole("executor_cpu_ns"), message.whole("executor_resident_bytes"), message.whole("executor_age_ms"),
        strict=True,
    )  # fmt: skip
    return RunningTotals(
        at_s,
        layouts,
        {name: message.numbers(name) for name in METERS},
        message.numbers("traffic"),
        {
            e: ProcessTotals(cpu, memory, max(0, age) * _MS)
            for e, (cpu, memory, age) in zip(executors, processes, strict=True)
        },
        latency,
    )


@dataclass(frozen=True, slots=True)
class CycleMetrics:
    """The metrics of a snapshot, over the time since an earlier moment."""

    metrics: Metrics
    traffic: tuple[EdgeTraffic, ...]
    nodes: tuple[NodeMetrics, ...]
    topologies: tuple[TopologyMetrics, ...]


NO_CYCLE_METRICS = CycleMetrics(Metrics(()), (), (), ())


def cycle_metrics(
    now: RunningTotals,
    before: RunningTotals,
    epochs: Mapping[str, int],
    node_of: Mapping[str, str],
    timeout_s: float,
) -> CycleMetrics:
    """The time between two moments. epochs: the topologies that run, in their order, with their present epochs.
    node_of: executor -> node."""
    named = {layout.name: layout for layout in now.layouts}
    listed = [named[name] for name in epochs if name in named]
    traffic = {(layout.id, t.source, t.target): t for layout in listed for t in _traffic(layout, now, before)}
    rows = _rows(listed, now)
    done = _differences(now, before)
    sources = np.concatenate([layout.sources for layout in listed]) if listed else np.zeros(0, dtype=np.bool_)
    columns = {
        "arrived": np.where(sources, done["arrived"][rows], _received(listed, traffic)),
        "executed": done["executed"][rows],
        "emitted": done["emitted"][rows],
        "pending": now.columns["pending"][rows],
        "cpu_s": done["cpu_ns"][rows] * _S,
        "busy_s": done["busy_ns"][rows] * _S,
        "idle_s": done["idle_ns"][rows] * _S,
        "blocked_s": done["blocked_ns"][rows] * _S,
        "throttled_s": done["throttled_ns"][rows] * _S,
    }
    instances = tuple(i for layout in listed for i in layout.instances)
    return CycleMetrics(
        Metrics(instances, columns, (now.columns["age_ms"][rows] / 1000).astype(np.float64)),
        tuple(traffic.values()),
        _nodes(now, before, node_of),
        tuple(_topology(t, now, before, done["emitted"], epochs[t.name], timeout_s) for t in listed),
    )


def _rows(listed: list[TopologyLayout], now: RunningTotals) -> NDArray[np.intp] | slice:
    """Where the instances of these topologies are among all; all of them where the order is the same."""
    if len(listed) == len(now.layouts) and all(a is b for a, b in zip(listed, now.layouts, strict=True)):
        return slice(None)
    starts = [now.starts[layout.id][0] for layout in listed]
    spans = [np.arange(start, start + len(layout.ids)) for start, layout in zip(starts, listed, strict=True)]
    return np.concatenate(spans) if spans else np.zeros(0, dtype=np.intp)


def _differences(now: RunningTotals, before: RunningTotals) -> dict[str, Whole]:
    if len(now.layouts) == len(before.layouts) and all(
        a is b for a, b in zip(now.layouts, before.layouts, strict=True)
    ):
        return {name: now.columns[name] - before.columns[name] for name in _RISING}
    if not len(before.ids):
        return {name: now.columns[name] for name in _RISING}
    order = np.argsort(before.ids)
    at = order[np.minimum(np.searchsorted(before.ids, now.ids, sorter=order), len(order) - 1)]
    known = before.ids[at] == now.ids
    return {name: now.columns[name] - np.where(known, before.columns[name][at], 0) for name in _RISING}


def _traffic(layout: TopologyLayout, now: RunningTotals, before: RunningTotals) -> Iterable[EdgeTraffic]:
    for block in layout.blocks:
        found, had = (totals.block(layout.id, block.source, block.target) for totals in (now, before))
        assert found is not None
        senders, receivers, rows = found
        if had is not None:
            kept_senders, kept_receivers = _kept(senders, had[0]), _kept(receivers, had[1])
            rows = rows.copy()
            rows[:kept_senders, :kept_receivers] -= had[2][:kept_senders, :kept_receivers]
        age_s = _oldest_s(_ages_ms(layout, now)[block.senders])
        yield EdgeTraffic(layout.name, block.source, block.target, rows.astype(np.float64), age_s)


def _ages_ms(layout: TopologyLayout, now: RunningTotals) -> Whole:
    start = now.starts[layout.id][0]
    return now.columns["age_ms"][start : start + len(layout.ids)]


def _oldest_s(ages_ms: Whole) -> float:
    return int(ages_ms.max(initial=0)) / 1000


def _kept(ids: Whole, before: Whole) -> int:
    """How many of the first instances are the same as before: a rescale removes and adds the last ones."""
    shared = min(len(ids), len(before))
    same = ids[:shared] == before[:shared]
    return shared if bool(same.all()) else int(np.argmin(same))


def _received(listed: list[TopologyLayout], traffic: Mapping[tuple[int, str, str], EdgeTraffic]) -> NDArray[np.float64]:
    found = []
    for layout in listed:
        rows = np.zeros(len(layout.ids))
        for block in layout.blocks:
            rows[block.receivers] += traffic[layout.id, block.source, block.target].rows.sum(axis=0)
        found.append(rows)
    return np.concatenate(found) if found else np.zeros(0)


def _nodes(now: RunningTotals, before: RunningTotals, node_of: Mapping[str, str]) -> tuple[NodeMetrics, ...]:
    found = []
    for node in sorted(set(node_of.values())):
        mine = [e for e, n in node_of.items() if n == node and e in now.executors]
        cpu_ns = sum(
            now.executors[e].cpu_ns - (before.executors[e].cpu_ns if e in before.executors else 0) for e in mine
        )
        memory = sum(now.executors[e].resident_bytes for e in mine) / 2**20
        found.append(NodeMetrics(node, cpu_ns * _S, memory, max((now.executors[e].age_s for e in mine), default=0.0)))
    return tuple(found)


def _topology(
    layout: TopologyLayout, now: RunningTotals, before: RunningTotals, emitted: Whole, epoch: int, timeout_s: float
) -> TopologyMetrics:
    start = now.starts[layout.id][0]
    span = slice(start, start + len(layout.ids))
    latency, had = now.latency.get(layout.id, NO_LATENCY), before.latency.get(layout.id, NO_LATENCY)
    due, read, record = (latency.since(had, clock) for clock in CLOCKS)
    return TopologyMetrics(
        layout.name,
        epoch,
        completed_rows=float(emitted[span][layout.sinks].sum()),
        late_rows=(due if due.rows else record).above(timeout_s * 1000),
        backlog_rows=float(now.columns["pending"][span][layout.sources].sum()),
        backlog_known=bool(now.columns["arrived_known"][span][layout.sources].all()),
        latency_due=due.latency(),
        latency_read=read.latency(),
        latency_record=record.latency(),
        age_s=_oldest_s(_ages_ms(layout, now)),
    )
