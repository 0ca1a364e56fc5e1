"""The phase of a topology: running, draining towards the end of an epoch, or standing still until some moment."""

from enum import Enum

from barograph.engines.sim.world.changes import TopologyChange


class TopologyPhase(Enum):
    RUNNING = "running"
    DRAINING = "draining"  # sources read no more; rows in flight end
    STOPPED = "stopped"  # until a known moment
    STALLED = "stalled"  # an instance has no seat
    HELD = "held"  # drained, with a new level: it waits for the plan that is made for it


class TopologyState:
    """change: what will hold when it goes on. at_boundary: what waits for the next regular end of an epoch.

    _ordered: what waits for a cut at ``_cut_s``; from ``_stands_s`` on it also takes effect if an epoch ends by itself.
    """

    def __init__(self, epoch_s: float) -> None:
        self.epoch_s = epoch_s
        self.phase = TopologyPhase.RUNNING
        self.epoch = 0
        self.since_s = 0.0  # when the phase began
        self.until_s = epoch_s  # running: the epoch's end; stopped: when it goes on
        self.change = TopologyChange()
        self.at_boundary = TopologyChange()
        self._cut_s: float | None = None
        self._ordered = TopologyChange()
        self._stands_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether a change is under way."""
        return self._cut_s is not None or self.phase in (TopologyPhase.DRAINING, TopologyPhase.STOPPED)

    def wakes_s(self) -> float | None:
        """When its phase changes next by itself."""
        if self.phase is TopologyPhase.RUNNING:
            return self.until_s if self._cut_s is None else min(self.until_s, self._cut_s)
        return self.until_s if self.phase is TopologyPhase.STOPPED else None

    @property
    def waiting(self) -> TopologyChange:
        """What was ordered and does not hold yet."""
        return _joined(_joined(self.change, self._ordered), self.at_boundary)

    def order(self, change: TopologyChange, at_s: float, stands_s: float = 0.0) -> None:
        """Cut the epoch at at_s; several orders share a cut. stands_s: from when on any end of an epoch is used."""
        if self.phase is TopologyPhase.RUNNING:
            self._ordered = _joined(self._ordered, change)
            self._cut_s = at_s if self._cut_s is None else max(self._cut_s, at_s)
            self._stands_s = max(self._stands_s, stands_s)
            return
        self.change = _joined(self.change, change)
        if self.phase is TopologyPhase.STALLED:
            self.stop(at_s)

    def keep_for_boundary(self, change: TopologyChange) -> None:
        self.at_boundary = _joined(self.at_boundary, change)

    def stop(self, until_s: float) -> None:
        self.phase, self.until_s = TopologyPhase.STOPPED, until_s

    def stall(self, change: TopologyChange) -> None:
        self.phase, self.change = TopologyPhase.STALLED, change
        self._take_ordered()

    def hold(self, now_s: float) -> None:
        """Drained for a change of level: the epoch stays open. Earlier orders are void; a new plan follows."""
        self._take_ordered()
        self.phase, self.since_s, self.change = TopologyPhase.HELD, now_s, TopologyChange()

    def release(self, now_s: float) -> None:
        """The plan it waited for leaves it as it is: it reads again, in the same epoch."""
        self.phase, self.since_s = TopologyPhase.RUNNING, now_s

    def fail(self, change: TopologyChange, until_s: float) -> None:
        """The epoch is lost; what was ordered holds when the topology goes on."""
        self.change = change
        self._take_ordered()
        self.stop(until_s)

    def _take_ordered(self) -> None:
        self.change = _joined(self.change, self._ordered)
        self._ordered, self._cut_s, self._stands_s = TopologyChange(), None, 0.0

    def woken(self, now_s: float) -> TopologyChange | None:
        """Go on to the next phase if it is time; a TopologyChange when the epoch is over and the next may begin."""
        if self.phase is TopologyPhase.RUNNING:
            cut = self._cut_s is not None and self._cut_s <= now_s + 1e-9
            over = self.until_s <= now_s + 1e-9
            if cut or over:
                if over and not cut:
                    self.change = _joined(self.change, self.at_boundary)
                    self.at_boundary = TopologyChange()
                if cut or self._stands_s <= now_s + 1e-9:
                    self._take_ordered()
                self.phase, self.since_s = TopologyPhase.DRAINING, now_s
            return None
        if self.phase is TopologyPhase.STOPPED and self.until_s <= now_s + 1e-9:
            return self.change
        return None

    def begin(self, now_s: float) -> None:
        """The next epoch."""
        self.phase, self.since_s, self.until_s = TopologyPhase.RUNNING, now_s, now_s + self.epoch_s
        self.change = TopologyChange()
        self.epoch += 1


def _joined(first: TopologyChange, then: TopologyChange) -> TopologyChange:
    """Both; where they contradict each other, the later one."""
    if _NOTHING in (first, then):
        return then if first == _NOTHING else first
    level = first.level if then.level is None else then.level
    ready_s = max(first.ready_s, then.ready_s)
    return TopologyChange(
        {**first.parallelism, **then.parallelism}, {**first.moves, **then.moves}, level, then.mode, ready_s
    )


_NOTHING = TopologyChange()
