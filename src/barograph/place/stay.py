"""Nothing moves: running instances stay where they are, and the engine places the others.

This is Spark without Barograph: its own scheduler gives tasks to any executor with a free core, and no policy decides.
"""

from collections.abc import Sequence

from barograph.model import Allotment, Cycle, Demand, Snapshot
from barograph.place import PlaceDecision


def stay(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    return PlaceDecision(now.placement)
