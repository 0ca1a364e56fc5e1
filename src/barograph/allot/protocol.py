"""The interface of an allotter."""

from collections.abc import Sequence
from typing import Protocol

from barograph.model import Allotment, Cycle, Demand, Snapshot


class Allotter(Protocol):
    """Called once a cycle, after the demand is known. Says which nodes each topology may use; places nothing.

    A topology whose number of nodes does not change keeps exactly the nodes it has.
    """

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand) -> Allotment: ...
