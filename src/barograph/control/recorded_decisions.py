"""The decisions of a history as log lines, also while it is being written: what was decided, why, and what came of it.

It shows the same decisions as a controller's log, from the entries that the controller recorded.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from barograph.control.decision_log import DecisionLine, NotableDecisions
from barograph.control.node_pool import NodeOrders
from barograph.history.places import HistoryPath
from barograph.history.read import entries, listed
from barograph.model import Cycle, ReasonCode

_FETCHED = frozenset({ReasonCode.NODE_FETCHED, ReasonCode.SPARE_NODE_FETCHED, ReasonCode.RELEASE_DISABLED})


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """One entry. line: None for a gap, of which ``gap`` says why. notable: whether a log has it at INFO."""

    number: int
    wall_ms: int
    policy: str
    mode: str
    line: DecisionLine | None
    gap: str
    notable: bool


class RecordedDecisions:
    """Reads on from where it was. folder: of the history; it may not be there yet."""

    def __init__(self, folder: HistoryPath) -> None:
        self.folder = folder
        self._after = 0
        self._decisions = NotableDecisions()

    def skip(self) -> None:
        """Leave out what is recorded already."""
        for _ in self.new():
            pass

    def new(self) -> Iterator[RecordedDecision]:
        """Those that were recorded since the last call."""
        if not listed(self.folder):
            return
        for entry in entries(self.folder, after=self._after):
            self._after = entry.number
            told = (entry.number, entry.wall_ms, entry.policy, entry.mode)
            if entry.cycle is not None:
                line, notable = self._decisions.take(entry.cycle, _orders(entry.cycle))
                yield RecordedDecision(*told, line, "", notable)
            elif entry.gap is not None:
                yield RecordedDecision(*told, None, f"{entry.gap.why} for {entry.gap.seconds:.1f} s", True)


def _orders(cycle: Cycle) -> NodeOrders:
    """Which nodes were to be released and fetched, from the reasons that were recorded."""
    reasons = cycle.plan.reasons
    return NodeOrders(
        release=tuple(r.about for r in reasons if r.code is ReasonCode.NODE_RELEASED),
        fetch=tuple(r.about for r in reasons if r.code in _FETCHED),
    )
