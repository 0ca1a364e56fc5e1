"""From the present to the plan: what changes, in which order, by which mode. It never decides where things go."""

from collections.abc import Sequence
from typing import Protocol

from barograph.model import Cycle, Demand, Placement, Plan, Reason, Snapshot


class Migrator(Protocol):
    """Called once a cycle, last; a pure function that turns decisions into the Plan an engine applies.

    The plan names only the places and parallelisms that change, and every share, since shares cost nothing to repeat.
    ``plan.cuts`` lists the topologies that are cut in the order in which they must go, so that no worker is overfull
    at any point.
    """

    def __call__(
        self,
        history: Sequence[Cycle],
        now: Snapshot,
        demand: Demand,
        placement: Placement,
        reasons: tuple[Reason, ...] = (),
    ) -> Plan: ...


__all__ = ["Migrator"]
