"""What is told of a run that no policy steers after its first placement. It only adds up."""

from collections.abc import Iterable

from barograph.experiments.first import UNSTEERED
from barograph.experiments.meter import UNKNOWN, Look, Meter
from barograph.experiments.report import ActionReport
from barograph.experiments.steered import Steered
from barograph.model import Snapshot


class Watched:
    """Takes what is seen each second: nothing has a share or a limit of its own."""

    def __init__(self, seconds: float) -> None:
        self._meter = Meter(seconds)

    def take(self, at_s: float, now: Snapshot) -> None:
        """at_s: since the load's start."""
        self._meter.take(Look(at_s, now, now.placement))

    def told(self, actions: Iterable[ActionReport], whole: bool) -> Steered:
        """whole: whether all of the run was seen; another driver's part of it is not known."""
        did = [text for action in actions for text in action.did]
        moves, rescales = (sum(text.startswith(word) for text in did) for word in ("moved ", "scaled "))
        return Steered(UNSTEERED, self._meter.told() if whole else UNKNOWN, moves, rescales)
