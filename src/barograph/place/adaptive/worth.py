"""Whether an optional move is worth the pause it costs. Pure arithmetic on the history; it places nothing.

Every change pauses the output of its topology once, however many instances move. A pause can gain two things:

- *Fewer nodes.* With P the pause and d the part of rows that optional moves may delay, one such change every P / d
  seconds delays at most that part, so percentiles up to 1 - d do not change. The first one may come sooner, as soon as
  the load is known.
- *Less traffic between nodes.* A row that stays on its node saves h seconds for each of its hops, and this holds for a
  part f of the rows. A pause delays the rows due in it by P/2 on average, and the rows after them while the backlog is
  cleared: in total P for each row due in the pause. The gain lasts as long as the placement does; as an estimate, as
  long as it has lasted: T. So a move is worth it if f * hops * h * T >= P * P.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.model import Cycle, Snapshot, Topology
from barograph.model.checks import require, require_number, require_positive

RARELY = 10.0


@dataclass(frozen=True, slots=True)
class Worth:
    """pause_s: P. delayed_part: d. hop_s: h. Formulas: see the module docstring. known_s: how long a topology must
    have been measured before its first optional move."""

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

    def may_choose(self, stretch: "Stretch", rarely: bool = False) -> bool:
        """Whether enough time has passed since the last change, optional or forced. rarely: a pause misses a target
        for the p99, so changes that nothing forces may delay only a tenth as many rows."""
        since_s = self.pause_s / self.delayed_part
        if rarely:
            return stretch.seconds >= RARELY * since_s
        return stretch.seconds >= (self.known_s if stretch.first else since_s)

    def saves_enough(self, saved_part: float, hops: int, lasted_s: float) -> bool:
        return saved_part * hops * self.hop_s * lasted_s >= self.pause_s**2


@dataclass(frozen=True, slots=True)
class Stretch:
    """How long a topology's placement has been unchanged. first: it is the first placement of the topology."""

    seconds: float
    first: bool


def unchanged(history: Sequence[Cycle], now: Snapshot, topology: str) -> Stretch:
    """How long the topology's placement has been unchanged.

    A change counts from the cycle that ordered it, unless it was refused or left out. Manual changes count too.
    """
    mine = {i: s for i, s in now.placement.slots.items() if i.topology == topology}
    since_s = now.at_s
    for cycle in reversed(history):
        then = cycle.snapshot
        ordered = cycle.outcome is None or (cycle.outcome.ok and topology not in cycle.outcome.untouched)
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
    """Number of hops on the longest path from a source; at least one."""
    depth: dict[str, int] = {}
    for operator in topology.order:
        depth[operator.name] = 1 + max((depth[p] for p in topology.parents(operator.name)), default=-1)
    return max(1, max(depth.values(), default=1))
