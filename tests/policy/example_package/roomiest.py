"""Instances stay where they are; one without a place gets a seat in the worker with the most free seats."""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.allot import Shared
from barograph.forecast import LastValue
from barograph.migrate.plan import Migrate
from barograph.model import Allotment, Cycle, Demand, Instance, MigrationMode, Placement, Snapshot
from barograph.place import PlaceDecision
from barograph.place.support.wanted import refused
from barograph.policy.definition import Policy
from barograph.scale import Measured


@dataclass(frozen=True)
class Roomiest:
    spare_seats: int = 0  # an option of the policy: kept free in each worker

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:
        free = {worker.slot: worker.seats - self.spare_seats for worker in now.workers}
        wanted = [Instance(o.topology, o.operator, index) for o in demand.operators for index in range(o.parallelism)]
        places = {i: slot for i in wanted if (slot := now.placement.get(i)) in free}
        for slot in places.values():
            free[slot] -= 1
        unplaced = []
        for instance in (i for i in wanted if i not in places):
            slot = max(free, key=lambda s: free[s], default=None)
            if slot is not None and free[slot] > 0:
                places[instance] = slot
                free[slot] -= 1
            else:
                unplaced.append(instance)
        return PlaceDecision(Placement(places), tuple(refused(unplaced, "no worker has a free seat")))


policy = Policy(
    name="roomiest",
    paper="example",
    line="new instances go to the worker with the most free seats; nothing else moves",
    forecaster=LastValue(),
    scaler=Measured(),
    allotter=Shared(),
    placer=Roomiest(),
    migrator=Migrate(MigrationMode.WARM_CUT),
)
