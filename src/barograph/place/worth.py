"""Whether a move that nothing forces is worth the pause it costs. Pure arithmetic on the history; it places nothing.

Every change pauses the output of its topology once, however many instances move. Two things can be bought with a pause:

- *Fewer nodes.* While P is the pause and d the share of rows that choices may delay, one choice each P / d seconds
  delays at most that share, so percentiles above it do not notice. The first choice may come sooner, as soon as it is
  known what the load needs.
- *Less traffic between nodes.* A row that stays on its node saves h seconds for each of its hops, and a part f of the
  rows is saved. A pause delays the rows due in it by P/2 on the mean, and those behind them while the backlog is made
  up for: taken together P for each row due in the pause. The gain lasts as long as the placement does, which is taken
  to be as long as it has lasted: T. So it is worth it when f * hops * h * T >= P * P.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.model import Cycle, Snapshot, Topology
from barograph.model.checks import require, require_number, require_positive


@dataclass(frozen=True, slots=True)
class Worth:
    """pause_s: P. delayed_part: d. hop_s: h. See the module's text for the formulas. known_s: how long a topology must
    have been seen before anything is chosen for it."""

    pause_s: float
    delayed_part: float
    hop_s: float
    known_s: float

    def __post_init__(self) -> None:
        require_number("pause_s", self.pause_s)
        require_positive("delayed_part", self.delayed_part)
        require(self.delayed_part <= 1, f"delayed_part must be at most 1, not {self.delayed_part}")
        require_number("hop_s", self.hop_s)
        require_number("known_s", self.known_s)

    def may_choose(self, stretch: "Stretch") -> bool:
        """Whether enough time has passed since the last change, by choice or not."""
        return stretch.seconds >= (self.known_s if stretch.first else self.pause_s / self.delayed_part)

    def saves_enough(self, saved_part: float, hops: int, lasted_s: float) -> bool:
        return saved_part * hops * self.hop_s * lasted_s >= self.pause_s**2


@dataclass(frozen=True, slots=True)
class Stretch:
    """For how long a topology has run as it does now. first: it was submitted so and never changed since."""

    seconds: float
    first: bool


def unchanged(history: Sequence[Cycle], now: Snapshot, topology: str) -> Stretch:
    """Since when the topology runs as it does now.

    A change counts from the cycle that ordered it, unless it was refused, and also when it was made by hand.
    """
    mine = {i: s for i, s in now.placement.slots.items() if i.topology == topology}
    since_s = now.at_s
    for cycle in reversed(history):
        then = cycle.snapshot
        ordered = cycle.outcome is None or cycle.outcome.ok
        plan = cycle.plan
        if ordered and (
            any(i.topology == topology for i in plan.placement) or any(r.topology == topology for r in plan.rescales)
        ):
            return Stretch(now.at_s - since_s, first=not then.placement)
        if {i: s for i, s in then.placement.slots.items() if i.topology == topology} != mine:
            return Stretch(now.at_s - since_s, first=not then.placement)
        since_s = then.at_s
    return Stretch(now.at_s - since_s, first=True)


def hops_of(topology: Topology) -> int:
    """How many hops the longest way from a source takes; at least one."""
    depth: dict[str, int] = {}
    for operator in topology.order:
        depth[operator.name] = 1 + max((depth[p] for p in topology.parents(operator.name)), default=-1)
    return max(1, max(depth.values(), default=1))
