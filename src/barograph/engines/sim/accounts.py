"""What the engine counts between two observations, and how that goes into the totals of the run."""

from barograph.engines.sim.grains.grain import CycleCounts, Ended, Grain
from barograph.engines.sim.totals import RunTotals
from barograph.engines.sim.world.layout import Floats, WorldLayout


class Accounts:
    """counts: by instance, since the last observation. cycle_ended: complete times since then."""

    def __init__(self, grain: Grain, layout: WorldLayout, timeout_s: float) -> None:
        self._grain, self._timeout_s = grain, timeout_s
        self._topologies = len(layout.topologies)
        self.totals = RunTotals(self._topologies, timeout_s)
        self.counts = CycleCounts.empty(layout, grain.dense_traffic)
        self.cycle_ended = self._nothing_ended()
        self._booked: list[Floats] | None = None  # the part of the counted traffic that is already in the totals

    def _nothing_ended(self) -> Ended:
        return Ended.empty(self._topologies, self._timeout_s)

    def nothing(self, layout: WorldLayout) -> CycleCounts:
        """Counts of a cycle in which nothing happened."""
        return CycleCounts.empty(layout, self._grain.dense_traffic)

    def flush(self) -> None:
        """Take over the complete times of the rows that ended since the last call."""
        fresh = self._nothing_ended()
        self._grain.flush(fresh)
        self.cycle_ended.merge(fresh)
        self.totals.open.merge(fresh)

    def up_to_date(self) -> CycleCounts:
        self.flush()
        self._grain.deliver(self.counts)
        return self.counts

    def close_cycle(self, layout: WorldLayout) -> None:
        """Everything counted goes into the totals, and the next cycle starts at 0."""
        self._book_traffic(layout)
        self.totals.cpu_used_s += float(self.counts.cpu_s.sum())
        self.counts = CycleCounts.empty(layout, self._grain.dense_traffic)
        self._booked = None
        self.cycle_ended = self._nothing_ended()

    def change_layout(self, old: WorldLayout, new: WorldLayout) -> None:
        """Counts of instances that remain are kept. Traffic is booked by the placement under which it was sent."""
        self._grain.deliver(self.counts)
        self._book_traffic(old)
        carried = self.counts.carried(old, new, self._grain.dense_traffic)
        self.totals.cpu_used_s += float(self.counts.cpu_s.sum() - carried.cpu_s.sum())
        self.counts = carried
        self._booked = [rows.copy() for rows in carried.traffic]

    def _book_traffic(self, layout: WorldLayout) -> None:
        rows = self.counts.traffic
        if self._booked is not None:
            rows = [a - b for a, b in zip(rows, self._booked, strict=True)]
        self.totals.sent(layout, rows)
