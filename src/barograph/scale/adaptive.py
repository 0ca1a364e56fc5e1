"""Ours: CPU share and number of instances together. Shares follow the load at once; instances only where shares end.

Per operator, in topological order: L = the larger of its forecast, with a margin for how far off such forecasts were
lately, and what its parents are about to send, which follows the size the parents are about to have; psi = L + backlog
/ cycles in which to catch up. Each instance needs r = 100 * its rows * kappa / cycle_s per cent of a core, its rows by
its own part of the arrivals and its own backlog, kappa = sum of cpu_s / sum of executed. The share is r with headroom,
smoothed. More instances are wanted when such a share would pass what one core or the largest node gives, or when
instances wait too much for CPU to help; a stateful operator gets them only when that has lasted, a stateless one at
once; fewer only after a long quiet time, and never where state would have to be repartitioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Demand, Forecast, Frame, Operator, OperatorDemand, Reason, Snapshot, beside_part
from barograph.scale.fit import fit_to_nodes
from barograph.scale.instances import Growth, Need
from barograph.scale.needs import Needs
from barograph.scale.protocol import ceil, demanded_before, instance_limit_pct
from barograph.scale.smooth import allotted, hold
from barograph.scale.trend import AHEAD_S, growth_within

BESIDE_CYCLES = 15


@dataclass(frozen=True, eq=False)
class _Sized:
    """An operator's demand, and what each of its instances needs at the least."""

    demand: OperatorDemand
    needed_pct: NDArray[np.float64]


@dataclass(frozen=True)
class Adaptive:
    """theta_pct: granularity of shares; None: a thirtieth of the largest node, 5 to 20; below 60 a twelfth. Shares of
    which that would be a large part are rounded more finely where they are no limits (lend): to a sixteenth of
    themselves, at least 0.5.

    phi: cycles behind kappa and the parts of arrivals. catch_up_cycles: in which shares are to clear a backlog.
    lasting_cycles: which the present instances may take to clear it before more are wanted.
    utilisation: part of its share an instance is meant to use; the rest is headroom that other topologies cannot take.
    patience_cycles: how long a stateful operator must want more instances. low, low_cycles: below which load, and for
    how long, before an operator gives up instances. rest_cycles: between two changes of a topology's parallelism.
    margin: of the forecast's usual error.
    growth: placers are asked to leave room for what the load grows to within some minutes, at most that many times the
    share. room_s: and for the largest share of so many seconds, or a short valley would be packed for the next peak to
    unpack.
    """

    theta_pct: float | None = None
    phi: int = 5
    catch_up_cycles: float = 5.0
    lasting_cycles: float = 20.0
    utilisation: float = 0.75
    patience_cycles: int = 3
    low: float = 0.15
    low_cycles: int = 60
    rest_cycles: int = 3
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
        )
        growth = Growth.of(history, now, self.patience_cycles, self.low_cycles, self.rest_cycles)
        found: dict[tuple[str, str], _Sized] = {}
        for topology in sorted(now.topologies, key=lambda t: t.level):  # higher levels get the free seats first
            for operator in topology.order:
                need = needs.of(topology, operator)
                sized = self._sized(history, now, topology.name, operator, need, growth)
                needs.passes_on(topology, operator, need, sized.demand.parallelism)
                found[topology.name, operator.name] = sized
        order = [found[t.name, o.name] for t in now.topologies for o in t.operators]
        beside = _beside(history, now)
        return Demand(tuple(self._reserving(history, now, o, beside) for o in _fitted(order, now)))

    def _sized(
        self, history: Sequence[Cycle], now: Snapshot, topology: str, operator: Operator, need: Need, growth: Growth
    ) -> _Sized:
        before = demanded_before(history, topology, operator.name)
        if need.kappa_s is None:
            unknown = self._unknown(now, topology, operator, before, need)
            return _Sized(unknown, np.zeros(unknown.parallelism))
        degree, wanted, why = growth.decide(topology, operator, need)
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
        return _Sized(OperatorDemand(topology, operator.name, degree, shares, held, wanted, reason), r_pct)

    def _theta_pct(self, now: Snapshot) -> float:
        if self.theta_pct is not None:
            return self.theta_pct
        largest = now.largest_node_pct  # many small instances rounded up in large steps would fill nodes with nothing
        return min(20.0, max(largest / 30, min(5.0, largest / 12)))

    def _theta_of(self, share_pct: float, coarse_pct: float) -> float:
        """Many small shares rounded up in large steps would fill nodes with nothing."""
        return min(coarse_pct, max(0.5, share_pct / 16.0)) if self.lend else coarse_pct

    def _reserving(self, history: Sequence[Cycle], now: Snapshot, o: OperatorDemand, beside: float) -> OperatorDemand:
        """What a placer should leave room for: the growth that is in sight, the largest share of late, and the threads
        that work beside each instance (``beside``: CPU of both, as a multiple of the instance's own)."""
        if not o.held_pct:
            return o  # a guess, on which no room is built
        room = np.array(o.shares_pct) * min(self.growth, growth_within(history, now, o.topology, o.operator, AHEAD_S))
        for cycle in reversed(history):
            before = cycle.demand.of(o.topology, o.operator)
            if now.at_s - cycle.snapshot.at_s > self.room_s or before is None or not before.held_pct:
                break
            if before.parallelism == o.parallelism:
                room = np.maximum(room, before.shares_pct)
        return replace(o, reserved_pct=tuple(np.minimum(room * beside, instance_limit_pct(now)).tolist()))

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
        return OperatorDemand(topology, operator.name, count, shares, (), count, reason)


def _share_pct(held_pct: float, sure_pct: float, theta_pct: float, aim: float, limit_pct: float) -> float:
    """Smoothed, with headroom for queues and for a forecast that is off. aim: the part of it that is to be used."""
    with_headroom = ceil(max(held_pct, sure_pct) / aim / theta_pct) * theta_pct
    return min(max(allotted(held_pct, theta_pct, limit_pct), with_headroom), limit_pct)


def _beside(history: Sequence[Cycle], now: Snapshot) -> float:
    """CPU that an instance and the threads beside it use, as a multiple of its own; the mean over nodes in use."""
    seen = [*(cycle.snapshot for cycle in history[-BESIDE_CYCLES:]), now]
    parts = [part for part in beside_part(seen).values() if part > 0]
    return 1.0 / (1.0 - sum(parts) / len(parts)) if parts else 1.0


def _over(degree: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for as many instances as there will be: nobody knows how rows fall on new ones, so evenly."""
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
    why = "headroom given up to fit the cluster" if part == 1.0 else f"the cluster holds {part:.0%} of what is needed"
    found, start = [], 0
    for o in demands:
        mine = tuple(shares[start : start + o.parallelism].tolist())
        start += o.parallelism
        numbers = {**(o.reason.numbers if o.reason else {}), "share_pct": float(sum(mine))}
        reason = Reason(f"{o.topology}/{o.operator}", f"{o.reason.why if o.reason else ''}; {why}", numbers)
        # Hard limits that add up to a full cluster waste what one leaves while another waits; so where all are short,
        # shares are what each is due, and limits stay what would be comfortable: who has work may use what is left.
        ceilings = o.shares_pct if part < 1.0 else ()
        found.append(replace(o, shares_pct=mine, ceilings_pct=ceilings, reason=reason))
    return tuple(found)
