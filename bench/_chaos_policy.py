"""A policy that wants something else all the time: other instances, shares and places. Only guards hold it back."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from barograph.forecast.last_value import LastValue
from barograph.model import Allotment, Cycle, Demand, Forecast, Instance, OperatorDemand, Placement, Slot, Snapshot
from barograph.place import PlaceDecision
from barograph.policy.definition import Policy
from barograph.policy.registry import named


def _chance(now: Snapshot, what: str) -> random.Random:
    """The same in the same cycle: stages are pure."""
    return random.Random(f"{what} {now.at_s} {now.version}")


@dataclass(frozen=True)
class RestlessScaler:
    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:  # noqa: ARG002
        chance = _chance(now, "scale")
        found = []
        for t in now.topologies:
            for o in t.operators:
                count = max(1, o.parallelism + chance.choice((-1, 0, 0, 1))) if not o.source else o.parallelism
                count = min(count, 3)
                found.append(OperatorDemand(t.name, o.name, count, (chance.uniform(1, 40),) * count))
        return Demand(tuple(found))


@dataclass(frozen=True)
class RestlessPlacer:
    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG002
        chance = _chance(now, "place")
        free = {w.slot: w.seats for w in now.workers}
        slots: dict[Instance, Slot] = {}
        wanted = [Instance(o.topology, o.operator, k) for o in demand.operators for k in range(o.parallelism)]
        for instance in wanted:
            here = now.placement.get(instance)
            if here is not None and free.get(here, 0) > 0 and chance.random() < 0.7:
                slots[instance] = here
                free[here] -= 1
        for instance in wanted:
            room = sorted(s for s, seats in free.items() if seats > 0)
            if instance not in slots and room:
                slots[instance] = chance.choice(room)
                free[slots[instance]] -= 1
        return PlaceDecision(Placement(slots))


def restless() -> Policy:
    even = named("adaptive")
    return replace(even, name="restless", forecaster=LastValue(), scaler=RestlessScaler(), placer=RestlessPlacer())
