"""Ours: CPU share and number of instances together. Shares follow the load at once; instances only where shares end.

Per operator, in topological order: L = the larger of its forecast, with a margin for how far off such forecasts were
lately, and what its parents are about to send, which follows the size the parents are about to have; psi = L + backlog
/ cycles in which to catch up. Each instance needs r = 100 * its rows * kappa / cycle_s per cent of a core, its rows by
its own part of the arrivals and its own backlog, kappa = sum of cpu_s / sum of executed. The share is r with headroom,
smoothed. More instances are wanted when such a share would pass what one core or the largest node gives, or when
instances wait too much for CPU to help; a stateful operator gets them only when that has lasted, a stateless one at
once; fewer only after a long quiet time, and never where state would have to be repartitioned.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Demand, Forecast, Frame, Operator, OperatorDemand, Reason, Snapshot, ratio_of_sums
from barograph.scale.fit import fit_to_nodes
from barograph.scale.instances import Growth, Need
from barograph.scale.protocol import ceil, demanded_before, instance_limit_pct
from barograph.scale.service import busy_s_per_row
from barograph.scale.skew import backlog_rows, may_be_skewed, parts_of_arrivals
from barograph.scale.smooth import allotted, hold


@dataclass(frozen=True)
class Adaptive:
    """theta_pct: granularity of shares; None: 20, or a twelfth of the largest node if that is less.

    phi: cycles behind kappa and the parts of arrivals. catch_up_cycles: in which shares are to clear a backlog.
    lasting_cycles: which the present instances may take to clear it before more are wanted. utilisation: part of its
    share an instance is meant to use, the rest is headroom. patience_cycles: how long a stateful operator must want
    more instances. low, low_cycles: below which load, and for how long, before an operator gives up instances.
    rest_cycles: between two changes of a topology's parallelism. margin: of the forecast's usual error.
    """

    theta_pct: float | None = None
    phi: int = 5
    catch_up_cycles: float = 5.0
    lasting_cycles: float = 20.0
    utilisation: float = 0.8
    patience_cycles: int = 3
    low: float = 0.3
    low_cycles: int = 60
    rest_cycles: int = 3
    margin: float = 1.0

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        frame = Frame.of(history, now)
        kappa = ratio_of_sums(frame.column("cpu_s"), frame.column("executed"), self.phi)
        feeding = self._feeding(frame)
        growth = Growth.of(history, now, self.patience_cycles, self.low_cycles, self.rest_cycles)
        passing: dict[int, float] = {}  # rows each operator will execute in the coming cycle
        found: dict[tuple[str, str], OperatorDemand] = {}
        for topology in sorted(now.topologies, key=lambda t: t.level):  # higher levels get the free seats first
            for operator in topology.order:
                i = frame.position[topology.name, operator.name]
                expected = forecast.of(topology.name, operator.name)
                sent = sum(passing[p] * ratio for p, ratio in feeding[i])
                sure = expected.arrived + self.margin * expected.error_rows if expected else 0.0
                arriving = max(sure, sent)
                need = self._need(history, now, frame, topology.name, operator, arriving, float(kappa[i]))
                found[topology.name, operator.name], passing[i] = self._demand(
                    history, now, topology.name, operator, need, growth
                )
        order = [found[t.name, o.name] for t in now.topologies for o in t.operators]
        return Demand(_fitted(order, now))

    def _feeding(self, frame: Frame) -> dict[int, list[tuple[int, float]]]:
        """Of each operator its parents, and rows sent to it per row they execute."""
        found: dict[int, list[tuple[int, float]]] = defaultdict(list)
        if frame.links:
            executed = frame.column("executed")[:, [link.parent for link in frame.links]]
            passed = np.nan_to_num(ratio_of_sums(frame.sent, executed, self.phi)).tolist()
            for link, ratio in zip(frame.links, passed, strict=True):
                found[link.child].append((link.parent, ratio))
        return found

    def _need(
        self,
        history: Sequence[Cycle],
        now: Snapshot,
        frame: Frame,
        topology: str,
        operator: Operator,
        arriving: float,
        kappa_s: float,
    ) -> Need:
        """What is to be done in the coming cycle, instance by instance."""
        graph, count = now.topology(topology), operator.parallelism
        parts = parts_of_arrivals(frame, graph, operator.name, count, self.phi)
        backlog = backlog_rows(frame, topology, operator.name, count)
        rows = arriving * parts + backlog / self.catch_up_cycles
        lasting_rows = arriving * parts + backlog / self.lasting_cycles
        service_s = 0.0
        if np.isfinite(kappa_s):
            service_s = busy_s_per_row(history, frame, (topology, operator.name), kappa_s, self.phi)
        return Need(
            arriving,
            rows,
            lasting_rows,
            float(backlog.sum()),
            kappa_s if np.isfinite(kappa_s) else None,
            service_s,
            now.cycle_s,
            instance_limit_pct(now),
            now.cluster_cpu_pct,
            self.utilisation,
            self.low,
            may_be_skewed(graph, operator.name),
        )

    def _demand(
        self, history: Sequence[Cycle], now: Snapshot, topology: str, operator: Operator, need: Need, growth: Growth
    ) -> tuple[OperatorDemand, float]:
        before = demanded_before(history, topology, operator.name)
        if need.kappa_s is None:
            return self._unknown(now, topology, operator, before, need), float(need.rows.sum())
        degree, wanted, why = growth.decide(topology, operator, need)
        r_pct = need.r_pct if degree == len(need.rows) else np.full(degree, float(need.r_pct.sum()) / degree)
        r_pct = np.minimum(r_pct, need.limit_pct)
        theta = self._theta_pct(now)
        known = before is not None and len(before.held_pct) == degree
        held_before = before.held_pct if before is not None and known else (None,) * degree
        held = tuple(hold(r, h, theta) for r, h in zip(r_pct.tolist(), held_before, strict=True))
        shares = tuple(self._share_pct(h, theta, need.limit_pct) for h in held)
        numbers = {
            "arriving_rows": need.arriving,
            "backlog_rows": need.backlog,
            "kappa_s": need.kappa_s,
            "busy_s_per_row": need.service_s,
            "needed_pct": float(need.r_pct.sum()),
            "largest_r_pct": float(need.r_pct.max()),
            "share_pct": float(sum(shares)),
            "limit_pct": need.limit_pct,
        }
        reason = Reason(f"{topology}/{operator.name}", why, numbers)
        demand = OperatorDemand(topology, operator.name, degree, shares, held, wanted, reason)
        return demand, min(float(need.rows.sum()), need.capacity_rows(degree))

    def _share_pct(self, held_pct: float, theta_pct: float, limit_pct: float) -> float:
        with_headroom = ceil(held_pct / self.utilisation / theta_pct) * theta_pct
        return min(max(allotted(held_pct, theta_pct, limit_pct), with_headroom), limit_pct)

    def _theta_pct(self, now: Snapshot) -> float:
        return self.theta_pct if self.theta_pct is not None else min(20.0, now.largest_node_pct / 12)

    def _unknown(
        self, now: Snapshot, topology: str, operator: Operator, before: OperatorDemand | None, need: Need
    ) -> OperatorDemand:
        """Nobody has seen it work: what it had, or was declared, or an even part of the cluster."""
        count, why = operator.parallelism, "it never executed a row: an even part of the cluster"
        everyone = sum(o.parallelism for t in now.topologies for o in t.operators)
        share = min(now.cluster_cpu_pct / max(1, everyone), need.limit_pct)
        if operator.cpu_pct is not None:
            share, why = min(operator.cpu_pct, need.limit_pct), "it never executed a row: as declared"
        shares = (share,) * count
        if before is not None and before.parallelism == count:
            shares, why = before.shares_pct, "it never executed a row: as before"
        reason = Reason(f"{topology}/{operator.name}", why, {"share_pct": float(sum(shares))})
        return OperatorDemand(topology, operator.name, count, shares, (0.0,) * count, count, reason)


def _fitted(order: list[OperatorDemand], now: Snapshot) -> tuple[OperatorDemand, ...]:
    """The demands with shares that fit the cluster's nodes."""
    if not order or not now.nodes:
        return tuple(order)
    needed = np.concatenate([_column(o.held_pct) for o in order])
    comfortable = np.concatenate([_column(o.shares_pct) for o in order])
    level = np.repeat([now.topology(o.topology).level for o in order], [o.parallelism for o in order])
    shares, part = fit_to_nodes(needed, comfortable, level, now.nodes)
    if np.array_equal(shares, comfortable):
        return tuple(order)
    found, start = [], 0
    for o in order:
        mine = tuple(shares[start : start + o.parallelism].tolist())
        start += o.parallelism
        why = (
            "headroom given up to fit the cluster" if part == 1.0 else f"the cluster holds {part:.0%} of what is needed"
        )
        numbers = dict(o.reason.numbers) if o.reason else {}
        numbers["share_pct"] = float(sum(mine))
        reason = Reason(f"{o.topology}/{o.operator}", f"{o.reason.why if o.reason else ''}; {why}", numbers)
        found.append(replace(o, shares_pct=mine, reason=reason))
    return tuple(found)


def _column(values: tuple[float, ...]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)
