"""Holds any policy to what the owners of topologies declare: instances of operators, and quotas of CPU and workers.

A policy may use the declarations itself; what it decides beyond them is taken back here, with the reason, for every
policy and in every engine. Pure. Nothing is changed where nothing is declared.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from barograph.limit import Limiter
from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Forecast,
    Instance,
    Operator,
    OperatorDemand,
    Placement,
    Reason,
    ReasonCode,
    Slot,
    Snapshot,
    Topology,
)
from barograph.place import PlaceDecision, Placer
from barograph.policy.definition import Policy

BOUNDED = frozenset(
    {
        ReasonCode.MOST_INSTANCES,
        ReasonCode.LEAST_INSTANCES,
        ReasonCode.EXCLUDED_FROM_SCALING,
        ReasonCode.CPU_QUOTA,
        ReasonCode.SCALES_TOGETHER,
    }
)
_HAIR = 1e-9


def within_bounds(policy: Policy, now: Snapshot) -> Policy:
    """The policy, held to what is declared for the topologies of this snapshot."""
    if any(_is_bounded(o) for t in now.topologies for o in t.operators) or any(t.quota_cpu_pct for t in now.topologies):
        policy = replace(policy, scaler=BoundedScaler(policy.scaler))
    if any(t.quota_cpu_pct for t in now.topologies):
        policy = replace(policy, limiter=QuotaLimiter(policy.limiter))
    if any(t.quota_workers for t in now.topologies):
        policy = replace(policy, placer=QuotaPlacer(policy.placer))
    return policy


def bound_reasons(demand: Demand) -> tuple[Reason, ...]:
    """Why less or more was asked for than the policy wanted."""
    return tuple(o.reason for o in demand.operators if o.reason is not None and o.reason.code in BOUNDED)


def _is_bounded(operator: Operator) -> bool:
    return operator.excluded or operator.max_parallelism is not None or operator.min_parallelism > 1


@dataclass(frozen=True)
class BoundedScaler:
    """A policy's scaler, within the bounds of operators and the CPU quotas of topologies."""

    scaler: Callable[[Sequence[Cycle], Snapshot, Forecast], Demand]

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        demand = self.scaler(history, now, forecast)
        found = [_within(now.topology(o.topology).operator(o.operator), o) for o in demand.operators]
        for topology in now.topologies:
            if topology.quota_cpu_pct is not None:
                found = _within_quota(topology, topology.quota_cpu_pct, found)
        return replace(demand, operators=tuple(found))


def _within(operator: Operator, o: OperatorDemand) -> OperatorDemand:
    """The demand with as many instances as are allowed. The reason says so where the policy wanted others."""
    if not _is_bounded(operator):
        return o
    least, most = operator.min_parallelism, operator.max_parallelism
    wanted = o.wanted or o.parallelism
    numbers = {"wanted": float(wanted), "least": float(least)} | ({} if most is None else {"most": float(most)})
    count = max(least, o.parallelism if most is None else min(most, o.parallelism))
    if operator.excluded:
        count, code, why = operator.parallelism, ReasonCode.EXCLUDED_FROM_SCALING, "it is excluded from scaling"
        if wanted == count == o.parallelism:
            return o
    elif operator.fixed_because:
        return o  # the engine cannot change it
    elif count == most and wanted > most:
        code, why = ReasonCode.MOST_INSTANCES, f"held back: it may have at most {most} instances"
    elif count == least and (wanted < least or o.parallelism < least):
        code, why = ReasonCode.LEAST_INSTANCES, f"held back: it must have at least {least} instances"
    else:
        return o
    return replace(resized(o, count), reason=Reason(f"{o.topology}/{o.operator}", code, why, numbers))


def resized(o: OperatorDemand, count: int) -> OperatorDemand:
    """The same CPU in total, for another number of instances; at most a core for each."""
    if count == o.parallelism:
        return o
    share = min(100.0, sum(o.shares_pct) / count)
    return replace(o, parallelism=count, shares_pct=(share,) * count, held_pct=(), reserved_pct=(), ceilings_pct=())


def _within_quota(topology: Topology, quota_pct: float, demand: list[OperatorDemand]) -> list[OperatorDemand]:
    """Shares, and what is reserved besides, cut in proportion so that they fit the quota."""
    mine = [o for o in demand if o.topology == topology.name]
    asked_pct = sum(sum(o.shares_pct) for o in mine)
    roomy_pct = sum(sum(o.reserved_pct or o.shares_pct) for o in mine)
    if max(asked_pct, roomy_pct) <= quota_pct + _HAIR:
        return demand
    part, roomy_part = min(1.0, quota_pct / max(asked_pct, _HAIR)), min(1.0, quota_pct / max(roomy_pct, _HAIR))
    numbers = {"asked_pct": asked_pct, "quota_pct": quota_pct}
    why = "held back: its shares were cut to its CPU quota"

    def cut(o: OperatorDemand) -> OperatorDemand:
        reason = Reason(f"{o.topology}/{o.operator}", ReasonCode.CPU_QUOTA, why, numbers)
        keeps = part == 1.0 or (o.reason is not None and o.reason.code in BOUNDED)
        return replace(
            o,
            shares_pct=tuple(s * part for s in o.shares_pct),
            reserved_pct=tuple(s * roomy_part for s in o.reserved_pct),
            reason=o.reason if keeps else reason,
        )

    return [cut(o) if o.topology == topology.name else o for o in demand]


@dataclass(frozen=True)
class QuotaLimiter:
    """A policy's limiter; the limits of a topology with a CPU quota add up to no more, whatever the policy lends.

    Also where the policy limits nothing: the quota is then divided as the shares are."""

    limiter: Limiter

    def __call__(
        self, history: Sequence[Cycle], now: Snapshot, demand: Demand, placement: Placement
    ) -> Mapping[Instance, float]:
        limits = dict(self.limiter(history, now, demand, placement))
        for topology in now.topologies:
            if topology.quota_cpu_pct is not None:
                limits |= _limited(topology.name, topology.quota_cpu_pct, limits, demand)
        return limits


def _limited(
    topology: str, quota_pct: float, limits: Mapping[Instance, float], demand: Demand
) -> dict[Instance, float]:
    shares = {i: s for i, s in demand.shares_by_instance().items() if i.topology == topology}
    mine = {i: s for i, s in limits.items() if i.topology == topology}
    if mine:
        total_pct = sum(mine.values())
        return mine if total_pct <= quota_pct + _HAIR else {i: s * quota_pct / total_pct for i, s in mine.items()}
    total_pct = sum(shares.values())
    even = quota_pct / max(1, len(shares))
    return {i: min(100.0, quota_pct * s / total_pct if total_pct > 0 else even) for i, s in shares.items()}


@dataclass(frozen=True)
class QuotaPlacer:
    """A policy's placer; the instances of a topology with a quota of workers are gathered on no more workers."""

    placer: Placer

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        found = self.placer(history, now, demand, allotment)
        for topology in now.topologies:
            if topology.quota_workers is not None:
                found = _gathered(now, topology.name, topology.quota_workers, found)
        return found


def _gathered(now: Snapshot, topology: str, quota: int, found: PlaceDecision) -> PlaceDecision:
    """Workers that already hold most of its instances are kept, and instances there stay."""
    mine = {i: s for i, s in found.placement.slots.items() if i.topology == topology}
    if len(set(mine.values())) <= quota or not now.workers:
        return found
    others = Counter(s for i, s in found.placement.slots.items() if i.topology != topology)
    seats = {w.slot: w.seats - others[w.slot] for w in now.workers if w.slot in set(mine.values())}
    here = Counter(s for i, s in now.placement.slots.items() if i in mine)
    planned = Counter(mine.values())
    order = sorted(seats, key=lambda s: (-here[s], -planned[s], -seats[s], s))
    chosen = _enough(order, seats, len(mine), quota)
    places = _dealt(mine, now.placement, {slot: seats[slot] for slot in chosen})
    if places is None:
        why = "its quota of workers has too few seats for its instances: it runs on more"
        reason = Reason(topology, ReasonCode.WORKER_QUOTA_SHORT, why, {"quota": float(quota), "workers": len(seats)})
        return replace(found, reasons=(*found.reasons, reason))
    numbers = {"quota": float(quota), "workers": float(len(seats)), "instances": float(len(mine))}
    reason = Reason(topology, ReasonCode.WORKER_QUOTA, "held back: gathered on its quota of workers", numbers)
    placement = Placement({**found.placement.slots, **places})
    return replace(found, placement=placement, reasons=(*found.reasons, reason))


def _enough(order: list[Slot], seats: Mapping[Slot, int], instances: int, quota: int) -> list[Slot]:
    """The first ones of the order; those with more seats instead of the last ones where they have too few."""
    chosen = order[:quota]
    roomy = sorted(order[quota:], key=lambda s: -seats[s])
    while sum(seats[s] for s in chosen) < instances and roomy and chosen:
        least = min(chosen, key=lambda s: seats[s])
        if seats[roomy[0]] <= seats[least]:
            break
        chosen[chosen.index(least)] = roomy.pop(0)
    return chosen


def _dealt(mine: Mapping[Instance, Slot], present: Placement, room: dict[Slot, int]) -> dict[Instance, Slot] | None:
    """Each instance stays where it is or is planned, if that is chosen, else it goes where most room is left."""
    places: dict[Instance, Slot] = {}
    for instance, slot in mine.items():
        for kept in (present.get(instance), slot):
            if kept is not None and room.get(kept, 0) > 0 and instance not in places:
                places[instance] = kept
                room[kept] -= 1
    for instance in mine:
        if instance not in places:
            roomiest = max(room, key=lambda s: room[s])
            if room[roomiest] <= 0:
                return None
            places[instance] = roomiest
            room[roomiest] -= 1
    return places
