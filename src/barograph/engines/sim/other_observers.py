"""Observers of a simulation besides the one that steers it. They look at a copy of the simulation and take differences,
so that not even the rounding of a figure that the controller sees depends on them.
"""

from copy import deepcopy
from dataclasses import dataclass, field

from barograph.engines.sim.accounts import Accounts
from barograph.engines.sim.grains.grain import CycleCounts, Ended
from barograph.engines.sim.world.layout import WorldLayout


@dataclass(slots=True)
class _Seen:
    """past: cycles that the controller has ended since the observer last looked. seen: the part of the controller's
    open cycle that the observer has seen already."""

    at_s: float
    past: CycleCounts
    past_ended: Ended
    seen: CycleCounts
    seen_ended: Ended = field(repr=False)


class OtherObservers:
    """By name. A new one begins where the controller's open cycle began."""

    def __init__(self, topologies: int, timeout_s: float) -> None:
        self._topologies, self._timeout_s = topologies, timeout_s
        self._of: dict[str, _Seen] = {}

    def look(
        self, observer: str, accounts: Accounts, layout: WorldLayout, opened_s: float, now_s: float
    ) -> tuple[CycleCounts, Ended, float]:
        """What it has not seen yet, and the seconds since it looked. opened_s: when the controller's cycle began."""
        copied = deepcopy(accounts, {id(layout): layout})  # the layout is never changed
        now, now_ended = copied.up_to_date(), copied.cycle_ended
        had = self._of.get(observer) or _Seen(
            opened_s, accounts.nothing(layout), self._none(), accounts.nothing(layout), self._none()
        )
        counts = had.past.plus(now).plus(had.seen, -1.0)
        ended = self._none()
        ended.merge(had.past_ended)
        ended.merge(now_ended)
        self._of[observer] = _Seen(now_s, accounts.nothing(layout), self._none(), now, now_ended)
        return counts, ended.less(had.seen_ended), now_s - had.at_s

    def cycle_ends(self, accounts: Accounts, layout: WorldLayout) -> None:
        """The controller has looked: its cycle is over, and the next starts at 0."""
        for seen in self._of.values():
            seen.past = seen.past.plus(accounts.counts).plus(seen.seen, -1.0)
            ended = self._none()
            ended.merge(seen.past_ended)
            ended.merge(accounts.cycle_ended)
            seen.past_ended = ended.less(seen.seen_ended)
            seen.seen, seen.seen_ended = accounts.nothing(layout), self._none()

    def change_layout(self, old: WorldLayout, new: WorldLayout, dense: bool) -> None:
        for seen in self._of.values():
            seen.past, seen.seen = (counts.carried(old, new, dense) for counts in (seen.past, seen.seen))

    def _none(self) -> Ended:
        return Ended.empty(self._topologies, self._timeout_s)
