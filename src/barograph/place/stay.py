"""Nothing moves: what runs stays where it is, and what has no place gets it from the engine itself.

This is Spark without Barograph: its own scheduler deals tasks to whoever offers a seat, and no policy has a say.
"""

from collections.abc import Sequence

from barograph.model import Allotment, Cycle, Demand, Snapshot
from barograph.place import PlaceDecision


def stay(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    return PlaceDecision(now.placement)
