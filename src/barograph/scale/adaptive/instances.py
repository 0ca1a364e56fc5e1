"""How many instances the adaptive scaler gives an operator: what it needs, and what may be changed now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Operator, OperatorDemand, ReasonCode, Snapshot
from barograph.scale.adaptive.growth import AHEAD_S, growth_within
from barograph.scale.adaptive.hot_keys import part_of_key
from barograph.scale.protocol import bounded, ceil, most_instances, spare_seats, total_seats
from barograph.scale.rest import since_change_s

STEADY = 1.05  # growth by less than this within AHEAD_S does not count
RELIEF = 0.8  # of the rows of the hottest instance: a change that leaves it more is not worth a pause
ROUNDING_S = 0.05  # cycles are not exactly as long as they should be
Decided = tuple[int, int, ReasonCode, str]


@dataclass(frozen=True, eq=False)
class Need:
    """The work of one operator in the next cycle.

    arriving: rows expected to be sent to it. rows: to be executed by each instance. sure_rows: the same with a margin
    for the error of the forecast. backlog: rows waiting now.
    lasting_rows: as ``rows``, but with the backlog spread over a longer time. It decides the number of instances, so
    that the backlog of one pause does not cause the next change.
    kappa_s: CPU seconds of a row, None if it never executed a row. service_s: seconds a row keeps an instance busy.
    limit_pct: the most one instance can use. useful: with more instances it would not get more CPU.
    by_key: whether rows may be distributed unevenly over instances. key_part: the part of them that one key has,
    which stays on one instance however many there are, and key_load for which part of its time that key keeps an
    instance busy; 0: not known to be one key. hot_part, hot_load: the same of all rows of the hottest instance, without
    backlog; 0 where none is hot.
    """

    arriving: float
    rows: NDArray[np.float64]
    sure_rows: NDArray[np.float64]
    lasting_rows: NDArray[np.float64]
    backlog: float
    kappa_s: float | None
    service_s: float
    cycle_s: float
    limit_pct: float
    useful: int
    utilisation: float
    low: float
    by_key: bool
    key_part: float = 0.0
    key_load: float = 0.0
    hot_part: float = 0.0
    hot_load: float = 0.0

    @property
    def r_pct(self) -> NDArray[np.float64]:
        """CPU each instance needs, in per cent of a core."""
        return self._pct(self.rows)

    @property
    def sure_pct(self) -> NDArray[np.float64]:
        return self._pct(self.sure_rows)

    def over(self, count: int) -> "Need":
        """The same work over another number of instances: evenly, but for the rows of one key that is known."""
        if count == len(self.rows):
            return self
        parts = np.full(count, (1.0 - self.key_part) / count)
        parts[0] += self.key_part

        def divided(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            found: NDArray[np.float64] = float(rows.sum()) * parts
            return found

        rows, sure_rows, lasting_rows = map(divided, (self.rows, self.sure_rows, self.lasting_rows))
        return replace(self, rows=rows, sure_rows=sure_rows, lasting_rows=lasting_rows)

    def _pct(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        needed: NDArray[np.float64] = 100.0 * rows * (self.kappa_s or 0.0) / self.cycle_s
        return needed

    def capacity_rows(self, instances: int) -> float:
        """Rows that this number of instances can execute in a cycle, each with all the CPU it can use."""
        slowest_s = max((self.kappa_s or 0.0) * 100.0 / self.limit_pct, self.service_s)
        return instances * self.cycle_s / slowest_s if slowest_s > 0 else float("inf")

    @property
    def load(self) -> float:
        """Lasting rows relative to the capacity of the present instances; above 1 they fall behind."""
        return float(self.lasting_rows.sum()) / self.capacity_rows(len(self.rows))

    @property
    def waits(self) -> bool:
        """Whether a row keeps an instance busy for longer than its CPU time."""
        return self.service_s > (self.kappa_s or 0.0) * 100.0 / self.limit_pct

    @property
    def comfortable(self) -> int:
        """The fewest instances whose shares, headroom included, stay below the limit."""
        return max(1, ceil(float(self.lasting_rows.sum()) / (self.capacity_rows(1) * self.utilisation)))

    @property
    def _key_stays(self) -> bool:
        """Whether twice as many instances would hardly relieve the hottest one, which executes what is due."""
        after = part_of_key(self.key_part, 2 * len(self.rows))
        return self.key_part > 0 and self.hot_load <= 1.0 and after > RELIEF * self.hot_part

    def wanted(self) -> tuple[int, str]:
        """Instances it should have if it could change at once, and why."""
        present = len(self.rows)
        if self.key_load > self.utilisation:
            return present, "one key is too much for an instance, so more instances would not help"
        if self.load > self.utilisation and self.waits:
            return max(present, self.comfortable), "instances mostly wait, so more CPU would not help"
        if self.load > self.utilisation:
            return max(present, min(self.comfortable, self.useful)), "a share would exceed what one instance can use"
        hottest = float(self.lasting_rows.max()) / (self.capacity_rows(1) * self.utilisation)
        if self.by_key and hottest > 1 and self._key_stays:
            return present, "most rows of its hottest instance have one key, so more instances would help little"
        if self.by_key and hottest > 1 and present > 1:
            return min(2 * present, ceil(present * hottest)), "one instance gets more rows than it can execute"
        if self.load < self.low:
            return min(present, max(self.comfortable, ceil(present / 2))), "shares follow the load; it is low"
        return present, "shares follow the load"


def why_no_more(now: Snapshot, operator: Operator, o: OperatorDemand) -> str:
    """Why an operator cannot have more instances than it has; empty where it can."""
    if operator.excluded:
        return "it is excluded from scaling"
    if operator.fixed_because:
        return f"the number of instances cannot change ({operator.fixed_because})"
    if o.parallelism == operator.parallelism >= bounded(now, operator, operator.parallelism + 1):
        return f"there may be at most {operator.parallelism} instances"
    return "no seat is free for more" if o.reason is not None and o.reason.code is ReasonCode.NO_SEAT_FREE else ""


@dataclass(eq=False)
class Growth:
    """What may change in this cycle: free seats, and what the last cycles wanted. Created for every decision.

    The seats of one node are kept free, so that after the loss of a node all instances fit on the others."""

    now: Snapshot = field(repr=False)
    free_seats: int
    resting: Mapping[str, bool]
    history: Sequence[Cycle] = field(repr=False)
    patience_s: float
    low_s: float

    @staticmethod
    def of(history: Sequence[Cycle], now: Snapshot, patience_s: float, low_s: float, rest_s: float) -> "Growth":
        running = sum(o.parallelism for t in now.topologies for o in t.operators)
        # The present cycle must lie after the change as a whole: numbers across a change must not cause the next one.
        rest_s = max(rest_s, now.cycle_s)
        resting = {t.name: since_change_s(history, now, t.name, rest_s) < rest_s for t in now.topologies}
        seats = total_seats(now)
        return Growth(
            now,
            most_instances(now) if seats is None else seats - spare_seats(now) - running,
            resting,
            history,
            patience_s,
            low_s,
        )

    def decide(self, topology: str, operator: Operator, need: Need) -> Decided:
        """Instances it gets now, instances it wants, the reason's code and its sentence."""
        present = operator.parallelism
        wanted, why = need.wanted()
        # What its owner excludes is taken back later (``policy/declared_bounds.py``), with uneven shares made even.
        allowed = present if operator.excluded else bounded(self.now, operator, wanted)
        if allowed == present:
            if wanted != present and operator.fixed_because:
                return present, wanted, ReasonCode.INSTANCES_FIXED, f"{why}; {operator.fixed_because}"
            return present, wanted, ReasonCode.INSTANCES_SUFFICE, why
        if self.resting[topology]:
            return present, wanted, ReasonCode.RESTING, f"{why}; no second change so soon after the last"
        if allowed > present:
            return self._grow(topology, operator, allowed, wanted, why)
        return self._shrink(topology, operator, allowed, wanted, why)

    def _grow(self, topology: str, operator: Operator, allowed: int, wanted: int, why: str) -> Decided:
        present = operator.parallelism
        if operator.stateful and not self._lasted(topology, operator, self.patience_s, more=True):
            why = f"{why}; state is repartitioned only if that lasts {self.patience_s:g} s"
            return present, wanted, ReasonCode.WISH_TOO_NEW, why
        seats = 1 + len(operator.scales_with)  # what one instance more takes
        degree = min(allowed, present + max(0, self.free_seats) // seats)
        if degree == present:
            return present, wanted, ReasonCode.NO_SEAT_FREE, f"{why}; no seat is free for {allowed - present} more"
        self.free_seats -= (degree - present) * seats
        return degree, wanted, ReasonCode.MORE_INSTANCES, f"{why}: {present} -> {degree} instances"

    def _shrink(self, topology: str, operator: Operator, allowed: int, wanted: int, why: str) -> Decided:
        present = operator.parallelism
        if operator.stateful:
            return present, wanted, ReasonCode.STATE_STAYS, f"{why}; fewer instances are not worth moving its state"
        if growth_within(self.history, self.now, topology, operator.name, AHEAD_S) > STEADY:
            return present, wanted, ReasonCode.LOAD_GROWS, f"{why}; fewer only if the load does not grow"
        if not self._lasted(topology, operator, self.low_s, more=False):
            why = f"{why}; fewer only if that lasts {self.low_s:g} s"
            return present, wanted, ReasonCode.WISH_TOO_NEW, why
        self.free_seats += present - allowed
        return allowed, wanted, ReasonCode.FEWER_INSTANCES, f"{why}: {present} -> {allowed} instances"

    def _lasted(self, topology: str, operator: Operator, seconds: float, more: bool) -> bool:
        """Whether it has wanted the same for so many seconds of cycles, the present one included. One cycle alone is
        never enough, however long it was: a slow change makes its own cycle long."""
        lasted_s = self.now.cycle_s
        for c in reversed(self.history):
            d = c.demand.of(topology, operator.name)
            if d is None or d.parallelism != operator.parallelism or d.wanted == d.parallelism:
                return False
            if (d.wanted > d.parallelism) != more:
                return False
            lasted_s += c.snapshot.cycle_s
            if lasted_s >= seconds - ROUNDING_S:
                return True
        return False
