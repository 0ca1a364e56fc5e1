"""Which slot each instance gets: one placer per file. A placer decides where instances run, not how they are moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from barograph.model import Allotment, Cycle, Demand, Placement, Reason, Refusal, Snapshot


@dataclass(frozen=True)
class PlaceDecision:
    """Where every instance should run, which instances got no place and why, and the reasons with their numbers.

    placement names every instance that has a place, also those that stay where they are.
    unplaced: ``what`` is the instance as ``topology/operator/index``.
    """

    placement: Placement
    unplaced: tuple[Refusal, ...] = ()
    reasons: tuple[Reason, ...] = ()


class Placer(Protocol):
    """Called once a cycle, after the nodes are allotted; a pure function of what it is given.

    history: the earlier cycles, oldest first, as the other stages get them. The placer starts from ``now.placement``,
    gives ``demand`` its instances and shares, keeps to the nodes of ``allotment`` and never uses more seats than there
    are. Instances that it cannot place are listed in ``unplaced``, each with its reason; the others are placed. Called
    again on its own result it changes nothing.
    """

    def __call__(
        self, history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment
    ) -> PlaceDecision: ...


__all__ = ["PlaceDecision", "Placer"]
