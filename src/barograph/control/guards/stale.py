"""What is held while the figures of a topology are too old to decide by: shares, limits, instances and moves. Pure.

A worker that reports nothing looks like one without load. So a topology with such an instance is held as a whole, for
every policy: its load counts as what it was last, its demand stays, and a plan changes nothing of it. Other topologies
go on. An instance that has no seat is placed all the same, and so is a topology whose sources wait for a new level.

So it is where the figures of a cycle cover much less or much more time than the cycle: the first cycle of a silence has
few rows in it and would look like an end of the load, the first one after it has all rows of the silence and would look
like a peak.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from barograph.control.guards.acts import changed
from barograph.control.guards.guard import homeless
from barograph.control.guards.trim import Held, made_valid
from barograph.engines.reduced import without
from barograph.model import (
    Cycle,
    Demand,
    EdgeTraffic,
    Forecast,
    Instance,
    Metrics,
    NodeMetrics,
    OperatorDemand,
    Plan,
    Reason,
    ReasonCode,
    Snapshot,
)
from barograph.policy.definition import Policy

REPORTS_S = 1.1  # a worker reports at least once a second, so ages differ by this much from cycle to cycle


@dataclass(frozen=True)
class OldFigures:
    """believed: the snapshot, with the last known figures where its own are too old. held: by topology that is held,
    the reason."""

    believed: Snapshot
    held: Mapping[str, Reason]

    @staticmethod
    def of(history: Sequence[Cycle], now: Snapshot, stale_s: float | None) -> "OldFigures":
        """history: with the snapshots that were believed. stale_s: older figures are too old; None: none is."""
        if stale_s is None:
            return OldFigures(now, {})
        before = history[-1].snapshot if history else None
        found = {t.name: _reason(t.name, now, before, stale_s) for t in now.topologies}
        held = {name: reason for name, reason in found.items() if reason is not None}
        believed = now if before is None else _with_last_known(now, before, set(held), stale_s)
        return OldFigures(believed, held)

    def __bool__(self) -> bool:
        return bool(self.held)

    def holding(self, policy: Policy) -> Policy:
        """The policy, which leaves the demand of what is held as it was."""
        return replace(policy, scaler=HoldingScaler(policy.scaler, frozenset(self.held))) if self else policy

    def held_back(self, history: Sequence[Cycle], cycle: Cycle, new_levels: bool) -> Cycle:
        """The cycle without what its plan changes of topologies that are held. new_levels: priorities have changed, so
        that instances may move."""
        if not self:
            return cycle
        now, asked = cycle.snapshot, cycle.plan
        held: Held = dict(self.held)
        free = {n for n in held if new_levels or homeless(now, n)}

        def build(names: Iterable[str]) -> Plan:
            return without(asked, now, names)

        order = sorted(changed(asked, now), key=lambda n: now.topology(n).level)
        plan, more = made_valid(build(set(held) - free), now, {n: held[n] for n in held if n not in free}, order, build)
        shares, limits = (
            {i: pct for i, pct in found.items() if i.topology not in held}
            for found in (plan.shares_pct, plan.limits_pct)
        )
        plan = replace(plan, shares_pct=shares, limits_pct=limits, rests=self._rests(history, plan, new_levels))
        return replace(cycle, plan=replace(plan, reasons=(*plan.reasons, *{**held, **more}.values())))

    def _rests(self, history: Sequence[Cycle], plan: Plan, new_levels: bool) -> tuple[str, ...] | None:
        """Topologies that are held go on resting, or reading, as before."""
        before = next((c.plan.rests for c in reversed(history) if c.plan.rests is not None), None)
        if plan.rests is None or new_levels:
            return plan.rests
        kept = [n for n in before or () if n in self.held]
        return (*kept, *(n for n in plan.rests if n not in self.held))


@dataclass(frozen=True)
class HoldingScaler:
    """A policy's scaler, but operators of some topologies keep their instances and their demand."""

    scaler: Callable[[Sequence[Cycle], Snapshot, Forecast], Demand]
    held: frozenset[str]

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        demand = self.scaler(history, now, forecast)
        found = (_kept(history, now, o) if o.topology in self.held else o for o in demand.operators)
        return replace(demand, operators=tuple(found))


def _kept(history: Sequence[Cycle], now: Snapshot, o: OperatorDemand) -> OperatorDemand:
    """As it was; as the scaler says, but with the present instances, where there was nothing before. It is not counted
    as a wish for more or fewer instances."""
    count = now.topology(o.topology).operator(o.operator).parallelism
    before = history[-1].demand.of(o.topology, o.operator) if history else None
    kept = before if before is not None and before.parallelism == count else o
    if kept.parallelism != count:
        even = (sum(kept.shares_pct) / count,) * count
        kept = replace(kept, parallelism=count, shares_pct=even, held_pct=(), reserved_pct=(), ceilings_pct=())
    reason = Reason(f"{o.topology}/{o.operator}", ReasonCode.FIGURES_STALE, "its figures are too old: as before")
    return replace(kept, wanted=count, reason=reason)


def _reason(topology: str, now: Snapshot, before: Snapshot | None, stale_s: float) -> Reason | None:
    """Why it is held: its oldest figure is too old, or covers another time than the cycle. None: it is not."""
    ages_s = _ages_s(now.metrics, topology)
    earlier_s = {} if before is None else _ages_s(before.metrics, topology)
    older_s = [age_s - earlier_s[instance] for instance, age_s in ages_s.items() if instance in earlier_s]
    if before is not None and not ages_s:  # nothing is known of it in this cycle
        older_s = [now.cycle_s]
    elif before is not None and before.runs(topology) and (not earlier_s or _one_is_missing(before, now)):
        older_s = [-now.cycle_s - REPORTS_S]  # what it covers is not known
    oldest_s = max(ages_s.values(), default=max(earlier_s.values(), default=-now.cycle_s) + now.cycle_s)
    off_s = max(older_s, key=abs, default=0.0)
    if oldest_s <= stale_s and abs(off_s) <= max(REPORTS_S, now.cycle_s / 2):
        return None
    numbers = {"age_s": oldest_s, "stale_s": stale_s, "covers_s": now.cycle_s - off_s, "cycle_s": now.cycle_s}
    return Reason(topology, ReasonCode.FIGURES_STALE, "held back: its figures are too old to decide by", numbers)


def _one_is_missing(before: Snapshot, now: Snapshot) -> bool:
    """Whether there was an observation between the two: a controller was killed with it."""
    return now.at_s - now.cycle_s > before.at_s + now.cycle_s / 4


def _ages_s(metrics: Metrics, topology: str) -> dict[Instance, float]:
    rows = [r for (t, _), found in metrics.rows_of_operator.items() if t == topology for r in found.tolist()]
    return {metrics.instances[r]: float(metrics.age_s[r]) for r in rows}


def _with_last_known(now: Snapshot, before: Snapshot, names: set[str], stale_s: float) -> Snapshot:
    """The snapshot with the figures before it of these topologies, and of nodes that are silent; ages are its own."""
    same = {n for n in names if before.runs(n) and before.topology(n).operators == now.topology(n).operators}
    longer = now.cycle_s / before.cycle_s
    nodes = {m.node: m for m in before.node_metrics}
    node_metrics = tuple(_last_known_node(m, nodes.get(m.node), longer, stale_s) for m in now.node_metrics)
    if not same:
        return now if node_metrics == now.node_metrics else replace(now, node_metrics=node_metrics)
    ages_s = {m.topology: m.age_s for m in now.topology_metrics}
    of = {
        m.topology: replace(m, age_s=ages_s.get(m.topology, m.age_s + now.cycle_s))
        for m in before.topology_metrics
        if m.topology in same
    }
    return replace(
        now,
        metrics=_last_known_metrics(now.metrics, before.metrics, same, longer, now.cycle_s),
        traffic=(
            *(e for e in now.traffic if e.topology not in same),
            *_last_known_traffic(now, before, same, longer),
        ),
        node_metrics=node_metrics,
        topology_metrics=(*(m for m in now.topology_metrics if m.topology not in of), *of.values()),
    )


def _last_known_traffic(now: Snapshot, before: Snapshot, names: set[str], longer: float) -> Iterable[EdgeTraffic]:
    ages_s = {(e.topology, e.source, e.target): e.age_s for e in now.traffic}
    for e in before.traffic:
        if e.topology in names:
            age_s = ages_s.get((e.topology, e.source, e.target), e.age_s + now.cycle_s)
            yield replace(e, rows=e.rows * longer, age_s=age_s)


def _last_known_metrics(now: Metrics, before: Metrics, names: set[str], longer: float, cycle_s: float) -> Metrics:
    there = {instance: at for at, instance in enumerate(before.instances) if instance.topology in names}
    known = set(now.instances)
    silent = [i for i in there if i not in known]  # of which nothing is known in this cycle
    instances = (*now.instances, *silent)
    pairs = [(at, there[i]) for at, i in enumerate(instances) if i in there]
    here, then = (np.array(p, dtype=np.int64) for p in (zip(*pairs, strict=True) if pairs else ((), ())))
    columns = {}
    for name, column in now.columns.items():
        columns[name] = np.concatenate((column, np.zeros(len(silent))))
        columns[name][here] = before.columns[name][then] * (1.0 if name == "pending" else longer)
    older_s = [float(before.age_s[there[i]]) + cycle_s for i in silent]
    return Metrics(instances, columns, np.concatenate((now.age_s, older_s)))


def _last_known_node(now: NodeMetrics, before: NodeMetrics | None, longer: float, stale_s: float) -> NodeMetrics:
    if before is None or max(now.age_s, before.age_s) <= stale_s:
        return now
    return replace(before, cpu_used_s=before.cpu_used_s * longer, age_s=now.age_s)
