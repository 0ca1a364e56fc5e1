"""The most CPU that each instance may use: its share, and what it may borrow or has saved. Shares are not changed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from barograph.model import Cycle, Demand, Instance, Placement, Snapshot


class Limiter(Protocol):
    """Called once a cycle, after the placer; a pure function from demand and placement to limits in per cent of a core.

    Empty where the policy limits nothing. ``placement``: where the placer wants the instances; an instance that it does
    not name stays where it is.
    """

    def __call__(
        self, history: Sequence[Cycle], now: Snapshot, demand: Demand, placement: Placement
    ) -> Mapping[Instance, float]: ...


__all__ = ["Limiter"]
