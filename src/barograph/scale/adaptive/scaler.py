"""Barograph's scaler: CPU share and number of instances. Shares follow the load at once; instances change rarely.

Per operator, in topological order: L = the larger of its forecast, with a margin for the recent error of such
forecasts, and what its parents will send, given the instances they are about to have; psi = L + backlog / time in
which to catch up. Each instance needs r = 100 * its rows * kappa / cycle_s per cent of a core, its rows by
its own part of the arrivals and its own backlog, kappa = sum of cpu_s / sum of executed. The share is r with headroom,
smoothed. More instances are wanted if such a share would exceed one core or the largest node, or if instances
mostly wait, so that more CPU would not help; a stateful operator gets them only if that has lasted, a stateless one at
once. An operator gets fewer only after a long time of low load, and never if state would have to be repartitioned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from barograph.model import (
    Cycle,
    Demand,
    Forecast,
    Frame,
    Operator,
    OperatorDemand,
    Reason,
    ReasonCode,
    Snapshot,
    Topology,
)
from barograph.scale.adaptive.cost import cost_of
from barograph.scale.adaptive.fit import fit_to_nodes
from barograph.scale.adaptive.hot_keys import hot_reasons
from barograph.scale.adaptive.instances import Growth, Need, why_no_more
from barograph.scale.adaptive.needs import Needs
from barograph.scale.adaptive.reserve import beside, reserving
from barograph.scale.adaptive.target import (
    NO_AIM,
    Aim,
    aim_for,
    bursts_pct,
    due_part,
    in_a_hurry,
    pauses_miss,
    target_reason,
    with_rise,
)
from barograph.scale.protocol import ceil, demanded_before, instance_limit_pct
from barograph.scale.smooth import allotted, hold

LONG_ROOM_S = 150.0  # instead of room_s, where one pause already misses the target for the p99


@dataclass(frozen=True, eq=False)
class _Sized:
    """An operator's demand, and the CPU that each of its instances needs without headroom. plain_pct: the shares of
    these instances as they would be without a target for the p99."""

    demand: OperatorDemand
    needed_pct: NDArray[np.float64]
    plain_pct: tuple[float, ...]


@dataclass(frozen=True)
class Adaptive:
    """theta_pct: granularity of shares; None: a thirtieth of the largest node, 5 to 20; below 60 a twelfth. With
    lend, where shares are no limits, small shares have a finer granularity: a sixteenth of the share, at least 0.5.

    phi: cycles behind kappa and the parts of arrivals. catch_up_cycles: in which shares should clear a
    backlog. lasting_cycles: in which the present instances must be able to clear it, else more are wanted. A cycle of
    these three stands for seconds (``Spans``), whatever the length of the newest one.
    utilisation: target for the part of its share that an instance uses; the rest is headroom that other topologies
    cannot take.
    patience_s: how long a stateful operator must want more instances. low, low_s: an operator gets fewer instances if
    its load is below low for low_s. rest_s: between two changes of a topology's parallelism.
    margin: how many times the forecast's usual error is added to it.
    growth: placers are asked to leave room for the growth of the load in the next minutes, at most this multiple of the
    share. room_s: and for the largest share in that many seconds, so that instances are not packed during a short low
    load and spread again at the next peak.
    """

    theta_pct: float | None = None
    phi: int = 5
    catch_up_cycles: float = 5.0
    lasting_cycles: float = 20.0
    utilisation: float = 0.75
    patience_s: float = 6.0
    low: float = 0.15
    low_s: float = 120.0
    rest_s: float = 20.0
    margin: float = 2.0
    growth: float = 1.3
    room_s: float = 30.0
    lend: bool = True

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        needs = Needs(
            history,
            Frame.of(history, now),
            forecast,
            phi=self.phi,
            catch_up_cycles=self.catch_up_cycles,
            lasting_cycles=self.lasting_cycles,
            margin=self.margin,
            utilisation=self.utilisation,
            low=self.low,
            hurried=[t.name for t in now.topologies if in_a_hurry(now, t)],
        )
        aims = {t.name: self._aim(history, now, t, needs) for t in now.topologies if t.target_p99_ms is not None}
        growth = Growth.of(history, now, self.patience_s, self.low_s, self.rest_s)
        found: dict[tuple[str, str], _Sized] = {}
        for topology in sorted(now.topologies, key=lambda t: t.level):  # higher levels get the free seats first
            aim = aims.get(topology.name, NO_AIM)
            for operator in topology.order:
                need = needs.of(topology, operator)
                if operator.name in aim.full:
                    need = replace(need, utilisation=min(need.utilisation, aim.full[operator.name]))
                sized = self._sized(history, now, topology.name, operator, need, growth, aim)
                needs.passes_on(topology, operator, need, sized.demand.parallelism)
                found[topology.name, operator.name] = sized
        order = [found[t.name, o.name] for t in now.topologies for o in t.operators]
        fitting = _fitted(order, now)
        times = beside(history, now)
        demands = tuple(self._reserving(history, now, times, o) for o in fitting)
        plain = partial(self._reserving, history, now, times, targeted=False)
        costs = {name: cost_of(name, now, demands, _plain(order, name), plain) for name in aims}
        said = (target_reason(history, now, now.topology(name), aims[name], demands, costs[name]) for name in aims)
        of_targets = (reason for reason in said if reason is not None)
        return Demand(demands, reasons=(*of_targets, *self._hot_reasons(now, needs, fitting)))

    def _hot_reasons(self, now: Snapshot, needs: Needs, fitting: Sequence[OperatorDemand]) -> Iterator[Reason]:
        limit_pct = instance_limit_pct(now)
        for o in fitting:
            if (hot := needs.hot.get((o.topology, o.operator))) is not None:
                stuck = why_no_more(now, now.topology(o.topology).operator(o.operator), o)
                yield from hot_reasons(o, hot, limit_pct, self.utilisation, stuck)

    def _aim(self, history: Sequence[Cycle], now: Snapshot, topology: Topology, needs: Needs) -> Aim:
        found: dict[str, Need] = {}
        for operator in topology.order:
            found[operator.name] = needs.of(topology, operator)
            needs.passes_on(topology, operator, found[operator.name], operator.parallelism)
        found = with_rise(needs.frame, topology, found)
        bursts = bursts_pct(history, topology) if self.lend else {}
        due = due_part(needs.frame, topology, found)
        return aim_for(history, now, topology, (topology.target_p99_ms or 0.0) / 1e3, found, bursts, due)

    def _sized(
        self,
        history: Sequence[Cycle],
        now: Snapshot,
        topology: str,
        operator: Operator,
        need: Need,
        growth: Growth,
        aim: Aim,
    ) -> _Sized:
        before = demanded_before(history, topology, operator.name)
        if need.kappa_s is None:
            unknown = self._unknown(now, topology, operator, before, need)
            return _Sized(unknown, np.zeros(unknown.parallelism), unknown.shares_pct)
        degree, wanted, code, why = growth.decide(topology, operator, need)
        r_pct, sure_pct = (np.minimum(_over(degree, values), need.limit_pct) for values in (need.r_pct, need.sure_pct))
        coarse = self._theta_pct(now)
        known = before is not None and len(before.held_pct) == degree
        held_before = before.held_pct if before is not None and known else (None,) * degree
        held = tuple(
            hold(r, h, self._theta_of(h or r, coarse)) for r, h in zip(r_pct.tolist(), held_before, strict=True)
        )
        shares = tuple(
            _share_pct(h, sure, self._theta_of(h, coarse), self.utilisation, need.limit_pct)
            for h, sure in zip(held, sure_pct.tolist(), strict=True)
        )
        plain_pct = shares
        if (used := aim.utilisation.get(operator.name)) is not None:  # its forecast p99 has the error of the forecast
            shares = tuple(
                _share_pct(h, max(h, aim.least_pct), self._theta_of(h, coarse), used, need.limit_pct) for h in held
            )
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
        reason = Reason(f"{topology}/{operator.name}", code, why, numbers)
        demand = OperatorDemand(topology, operator.name, degree, shares, held, wanted, reason, key_part=need.key_part)
        return _Sized(demand, r_pct, plain_pct)

    def _theta_pct(self, now: Snapshot) -> float:
        if self.theta_pct is not None:
            return self.theta_pct
        largest = now.largest_node_pct  # many small shares rounded up in large steps would reserve much CPU without use
        return min(20.0, max(largest / 30, min(5.0, largest / 12)))

    def _theta_of(self, share_pct: float, coarse_pct: float) -> float:
        """The granularity for a share: finer for small shares, which would else reserve much CPU without use."""
        return min(coarse_pct, max(0.5, share_pct / 16.0)) if self.lend else coarse_pct

    def _reserving(
        self, history: Sequence[Cycle], now: Snapshot, times: float, o: OperatorDemand, targeted: bool = True
    ) -> OperatorDemand:
        """targeted: with what the target of its topology adds to shares and to the time that is looked back."""
        long = targeted and pauses_miss(now.topology(o.topology))
        return reserving(
            history, now, o, most_growth=self.growth, room_s=LONG_ROOM_S if long else self.room_s, times=times,
            shares_of=(lambda before: before.shares_pct) if targeted else partial(self._usual_pct, now),
        )  # fmt: skip

    def _usual_pct(self, now: Snapshot, before: OperatorDemand) -> tuple[float, ...]:
        """The shares of an earlier cycle as they would have been without a target, and a forecast without error."""
        coarse, most = self._theta_pct(now), instance_limit_pct(now)
        return tuple(_share_pct(h, h, self._theta_of(h, coarse), self.utilisation, most) for h in before.held_pct)

    def _unknown(
        self, now: Snapshot, topology: str, operator: Operator, before: OperatorDemand | None, need: Need
    ) -> OperatorDemand:
        """It never executed a row: the share it had, or its declared one, or an even part of the cluster."""
        count = operator.parallelism
        code, why = ReasonCode.SHARE_EVEN, "it never executed a row: an even part of the cluster"
        instances = sum(o.parallelism for t in now.topologies for o in t.operators)
        share = min(now.cluster_cpu_pct / max(1, instances), need.limit_pct)
        if operator.cpu_pct is not None:
            share = min(operator.cpu_pct, need.limit_pct)
            code, why = ReasonCode.SHARE_DECLARED, "it never executed a row: as declared"
        shares = (share,) * count
        if before is not None and before.parallelism == count:
            shares = before.shares_pct
            code, why = ReasonCode.SHARE_BEFORE, "it never executed a row: as before"
        reason = Reason(f"{topology}/{operator.name}", code, why, {"share_pct": float(sum(shares))})
        return OperatorDemand(topology, operator.name, count, shares, (), count, reason)


def _share_pct(held_pct: float, sure_pct: float, theta_pct: float, aim: float, limit_pct: float) -> float:
    """Smoothed, with headroom for queues and for the error of the forecast. aim: the part that should be used."""
    with_headroom = ceil(max(held_pct, sure_pct) / aim / theta_pct) * theta_pct
    return min(max(allotted(held_pct, theta_pct, limit_pct), with_headroom), limit_pct)


def _plain(order: Sequence[_Sized], topology: str) -> list[OperatorDemand]:
    """A topology's demand as it would be without a target."""
    return [replace(s.demand, shares_pct=s.plain_pct) for s in order if s.demand.topology == topology]


def _over(degree: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values for the new number of instances: evenly, as the distribution over new instances is not known."""
    return values if degree == len(values) else np.full(degree, float(values.sum()) / degree)


def _fitted(order: list[_Sized], now: Snapshot) -> tuple[OperatorDemand, ...]:
    """The demands with shares that fit the cluster's nodes."""
    demands = [sized.demand for sized in order]
    if not order or not now.nodes:
        return tuple(demands)
    count = [o.parallelism for o in demands]
    number = {t.name: i for i, t in enumerate(now.topologies)}
    comfortable = np.concatenate([np.array(o.shares_pct) for o in demands])
    shares, part = fit_to_nodes(
        needed=np.concatenate([sized.needed_pct for sized in order]),
        held=np.concatenate([np.array(o.held_pct or (0.0,) * o.parallelism) for o in demands]),
        comfortable=comfortable,
        level=np.repeat([now.topology(o.topology).level for o in demands], count),
        owner=np.repeat([number[o.topology] for o in demands], count),
        nodes=now.nodes,
    )
    if np.array_equal(shares, comfortable):
        return tuple(demands)
    code, why = ReasonCode.HEADROOM_GIVEN_UP, "headroom reduced to fit the cluster"
    if part != 1.0:
        code, why = ReasonCode.CLUSTER_TOO_SMALL, f"the cluster has {part:.0%} of the CPU that is needed"
    found, start = [], 0
    for o in demands:
        mine = tuple(shares[start : start + o.parallelism].tolist())
        start += o.parallelism
        numbers = {**(o.reason.numbers if o.reason else {}), "share_pct": float(sum(mine))}
        sentence = f"{o.reason.why}; {why}" if o.reason else why
        reason = Reason(f"{o.topology}/{o.operator}", code, sentence, numbers)
        # Hard limits that add up to the whole cluster waste CPU that one instance leaves while another waits. So if the
        # cluster is too small, shares are reduced but limits stay comfortable: busy instances may use idle CPU.
        ceilings = o.shares_pct if part < 1.0 else ()
        found.append(replace(o, shares_pct=mine, ceilings_pct=ceilings, reason=reason))
    return tuple(found)
