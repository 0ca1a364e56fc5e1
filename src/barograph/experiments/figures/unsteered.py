"""The figures of a run that no policy steers after its first placement. It only sums up observations."""

from collections.abc import Iterable

from barograph.experiments.figures.run_meter import UNKNOWN, Look, RunMeter
from barograph.experiments.figures.steered import Steered
from barograph.experiments.report import ActionReport
from barograph.experiments.steering.first_placement import UNSTEERED
from barograph.model import Snapshot


class UnsteeredFigures:
    """Takes one observation each second; no instance has a share or a limit."""

    def __init__(self, seconds: float) -> None:
        self._meter = RunMeter(seconds)

    def take(self, at_s: float, now: Snapshot) -> None:
        """at_s: since the load's start."""
        self._meter.take(Look(at_s, now, now.placement))

    def told(self, actions: Iterable[ActionReport], whole: bool) -> Steered:
        """whole: whether all of the run was observed; the part of an earlier driver is unknown."""
        ordered = [(action.moves, action.rescales) for action in actions]
        metered = self._meter.told() if whole else UNKNOWN
        return Steered(UNSTEERED, metered, sum(m for m, _ in ordered), sum(r for _, r in ordered))
