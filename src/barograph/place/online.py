"""Online: when a new schedule by measured traffic is computed, and when it is applied (Aniello et al., 3.2.1).

Topologies without measurements are placed as by Storm's default scheduler. Then every P seconds a new schedule is
computed (``by_traffic``). It is applied only if it cuts inter-node traffic by more than R %, or if a node has been at
or above its bound B for X seconds, which is checked in every cycle. Otherwise nothing moves: a change stops the
topology, and a small gain is not worth that. P and X are in seconds, whatever the length of a cycle; the reasons say
when a schedule was last computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Snapshot
from barograph.model.checks import require, require_number, require_positive
from barograph.place import PlaceDecision
from barograph.place.by_traffic import ByTraffic
from barograph.place.even import even
from barograph.place.support.cluster_arrays import HAIR, ClusterArrays
from barograph.place.support.cost import traffic_of
from barograph.place.support.period import COMPUTED_AT, last_computed_s, waiting
from barograph.place.support.topology_arrays import TopologyArrays, topology_arrays
from barograph.place.support.wanted import kept_as_is, measured

FULL_PCT = 90.0  # instances of a full node get no more than this: the rest is lost to context switches


@dataclass(frozen=True, slots=True)
class Online:
    """The Placer. alpha, nodes_to_use, spread: see ``ByTraffic``.

    reschedule_s: P. least_gain_pct: R, in per cent of the present inter-node traffic. bound_pct: B of each node, in per
    cent of its CPU. overload_s: X.
    """

    alpha: float = 0.0
    nodes_to_use: int | None = None
    spread: bool = True
    reschedule_s: float = 30.0
    least_gain_pct: float = 10.0
    bound_pct: float = 100.0
    overload_s: float = 20.0

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, f"alpha must be between 0 and 1, not {self.alpha}")
        require(self.nodes_to_use is None or self.nodes_to_use > 0, "nodes_to_use must be at least 1")
        require_positive("reschedule_s", self.reschedule_s)
        require_number("least_gain_pct", self.least_gain_pct)
        require_positive("bound_pct", self.bound_pct)
        require_positive("overload_s", self.overload_s)

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        cluster = ClusterArrays(now, allotment)
        topologies = topology_arrays(now, demand, cluster)
        incomplete = [arrays for arrays in topologies if (arrays.present < 0).any()]
        if incomplete and not any(measured(arrays) for arrays in incomplete):
            why = "unplaced topologies have no measurements yet: placed as by Storm's default scheduler"
            last_s = last_computed_s(history)
            numbers = {COMPUTED_AT: now.at_s if last_s is None else last_s}
            began = Reason("cluster", ReasonCode.SCHEDULE_UNMEASURED, why, numbers)
            return _explained(even(history, now, demand, allotment), began)
        if incomplete:
            why = "some instances have no place: a new schedule is applied"
            lost = Reason("cluster", ReasonCode.SCHEDULE_NEEDED, why, {COMPUTED_AT: now.at_s})
            return _explained(self._schedule().schedule(now, demand, allotment), lost)
        overloaded = overloaded_nodes(history, now, self.bound_pct, self.overload_s)
        wait = waiting(history, now, self.reschedule_s)
        if wait is not None and not overloaded:
            return kept_as_is(topologies, cluster, wait)
        return self._judged(cluster, topologies, overloaded, self._schedule().schedule(now, demand, allotment))

    def _schedule(self) -> ByTraffic:
        return ByTraffic(self.alpha, self.nodes_to_use, self.spread, self.bound_pct)

    def _judged(
        self,
        cluster: ClusterArrays,
        topologies: list[TopologyArrays],
        overloaded: tuple[str, ...],
        found: PlaceDecision,
    ) -> PlaceDecision:
        """The new schedule if it is worth the change, else the present one."""
        now = cluster.now
        before, _ = traffic_of(cluster, topologies, now.placement)
        after, _ = traffic_of(cluster, topologies, found.placement)
        gain_pct = 100.0 * (before - after) / before if before > 0 else 0.0
        moves = sum(now.placement.get(i) != slot for i, slot in found.placement.slots.items())
        numbers = {
            COMPUTED_AT: now.at_s,
            "inter_node_rows_per_s": before,
            "new_inter_node_rows_per_s": after,
            "gain_pct": gain_pct,
            "least_gain_pct": self.least_gain_pct,
            "overloaded_nodes": float(len(overloaded)),
            "moves": float(moves),
        }
        if found.unplaced:
            code, why = ReasonCode.SCHEDULE_INCOMPLETE, f"kept: {_first_refusal(found)}"
        elif not moves:
            code, why = ReasonCode.SCHEDULE_SAME, "kept: the new schedule is the present one"
        elif gain_pct > self.least_gain_pct + HAIR:
            code = ReasonCode.SCHEDULE_GAINS
            why = f"applied: the new schedule cuts inter-node traffic by {gain_pct:.1f} %"
        elif overloaded:
            code = ReasonCode.SCHEDULE_RELIEVES
            why = f"applied: {', '.join(overloaded)} at or above {self.bound_pct:g} % for {self.overload_s:g} s"
        else:
            code = ReasonCode.SCHEDULE_GAINS_LITTLE
            why = f"kept: the new schedule cuts inter-node traffic by {gain_pct:.1f} %, too little for a change"
        reason = Reason("cluster", code, why, numbers)
        taken = code in (ReasonCode.SCHEDULE_GAINS, ReasonCode.SCHEDULE_RELIEVES)
        return _explained(found, reason) if taken else kept_as_is(topologies, cluster, reason)


def overloaded_nodes(history: Sequence[Cycle], now: Snapshot, bound_pct: float, for_s: float) -> tuple[str, ...]:
    """Nodes whose instances have used the bound or more, in every cycle of the last for_s seconds.

    Cycles before the last change of the placement do not count: other instances ran there.
    """
    found, held_s = {n.name for n in now.nodes}, 0.0
    for snapshot in (now, *(cycle.snapshot for cycle in reversed(history))):
        if snapshot.placement != now.placement:
            break
        found &= _at_bound(snapshot, min(bound_pct, FULL_PCT))
        held_s += snapshot.cycle_s
        if not found:
            break
        if held_s >= for_s - HAIR:
            return tuple(sorted(found))
    return ()


def _at_bound(snapshot: Snapshot, bound_pct: float) -> set[str]:
    used_s = dict.fromkeys((n.name for n in snapshot.nodes), 0.0)
    cpu_s = snapshot.metrics.columns["cpu_s"].tolist()
    for instance, seconds in zip(snapshot.metrics.instances, cpu_s, strict=True):
        slot = snapshot.placement.get(instance)
        if slot is not None and slot.node in used_s:
            used_s[slot.node] += seconds
    bound_s = {n.name: n.cpu_pct / 100.0 * bound_pct / 100.0 * snapshot.cycle_s for n in snapshot.nodes}
    return {name for name, seconds in used_s.items() if seconds >= bound_s[name] - HAIR}


def _explained(found: PlaceDecision, why: Reason) -> PlaceDecision:
    return replace(found, reasons=(*found.reasons, why))


def _first_refusal(found: PlaceDecision) -> str:
    return f"the new schedule has no place for {len(found.unplaced)} instances: {found.unplaced[0].reason}"
