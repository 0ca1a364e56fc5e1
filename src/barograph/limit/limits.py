"""The limiter: from what each instance is guaranteed to the most it may use."""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.limit.lend import topologies_in_need, with_borrowed
from barograph.limit.save import with_savings
from barograph.model import Cycle, Demand, Instance, Placement, Snapshot


@dataclass(frozen=True, slots=True)
class Limit:
    """lend: whether limits are above shares where a node has CPU that no other topology there needs."""

    lend: bool = False

    def __call__(
        self, history: Sequence[Cycle], now: Snapshot, demand: Demand, placement: Placement
    ) -> dict[Instance, float]:
        """Where CPU is short the demand has ceilings of its own, above the shares. They never allow an instance to take
        CPU that another topology on its node is guaranteed. A topology that is not short may later use what it leaves
        of its share now."""
        if not demand.enforced:
            return {}
        shares = demand.shares_by_instance()
        ceilings = demand.ceilings_by_instance()
        if not self.lend or not shares:
            return {**shares, **ceilings}
        short = topologies_in_need(history, demand)
        limits = with_borrowed(history, now, placement, demand, shares, short)
        limits |= {i: min(ceiling, limits[i]) for i, ceiling in ceilings.items()}
        if not short:
            return limits
        saving = {i: share for i, share in shares.items() if i.topology not in short}
        return with_savings(history, now, placement, limits, saving)
