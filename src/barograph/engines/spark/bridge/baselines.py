"""What each observer saw last, so that each gets what is new to it and none takes anything from another.

An observer is known by its name. The memory is bounded: one that has not looked for long is forgotten, and begins anew
like a new one.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass

from barograph.engines.spark.bridge.running_totals import RunningTotals
from barograph.model import BadInput, Snapshot

MOST_OBSERVERS = 64
FORGOTTEN_S = 900.0  # longer than a connection to the endpoint stays open without a request
MOST_MARKS = 4
MARK_S = 1.0  # moments closer together than this say little about a rate
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Baseline:
    """The totals that an observer saw last, and the snapshot that it was given."""

    totals: RunningTotals
    snapshot: Snapshot


class Baselines:
    """born: the totals when the engine began."""

    def __init__(self, born: RunningTotals) -> None:
        self._of: OrderedDict[str, Baseline] = OrderedDict()
        # Recent moments at which any observer looked: a new one begins there.
        self._marks: deque[RunningTotals] = deque([born], maxlen=MOST_MARKS)

    def before(self, observer: str, at_s: float) -> RunningTotals:
        """From where its next cycle counts: what it saw last; of a new observer, what any other saw a moment ago."""
        observer_in(observer)
        mine = self._of.get(observer)
        return self.recent(at_s, MARK_S) if mine is None else mine.totals

    def recent(self, at_s: float, least_s: float) -> RunningTotals:
        """The last moment that is at least so long ago; if there is none, the oldest that is known."""
        return next((m for m in reversed(self._marks) if at_s - m.at_s >= least_s), self._marks[0])

    def last(self, observer: str) -> Snapshot | None:
        """The snapshot that it was given last; None if it is new."""
        mine = self._of.get(observer)
        return None if mine is None else mine.snapshot

    def looked(self, observer: str, totals: RunningTotals, snapshot: Snapshot) -> None:
        """Its next cycle counts from here."""
        self._of[observer] = Baseline(totals, snapshot)
        self._of.move_to_end(observer)
        self.mark(totals)
        while len(self._of) > MOST_OBSERVERS or totals.at_s - self._longest_ago().totals.at_s > FORGOTTEN_S:
            self._of.popitem(last=False)

    def mark(self, totals: RunningTotals) -> None:
        """Remember a moment, for observers that are new and for rates."""
        if totals.at_s - self._marks[-1].at_s >= MARK_S:
            self._marks.append(totals)

    def _longest_ago(self) -> Baseline:
        return next(iter(self._of.values()))

    def __len__(self) -> int:
        return len(self._of)


def observer_in(request: object) -> str:
    """The observer that a request names. Each needs a name: two without one would take from each other."""
    name = request.get("observer") if isinstance(request, dict) else request
    if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME:
        return name
    raise BadInput(f"the name of an observer must be text of 1 to {LONGEST_NAME} characters, not {name!r:.60}")
