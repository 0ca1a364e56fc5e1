"""What is to be, and what came of it. Only engines act on a Plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from barograph.model.checks import require, require_name, require_number, require_whole
from barograph.model.decision import Reason
from barograph.model.placement import Placement
from barograph.model.topology import Instance


class MigrationMode(StrEnum):
    """How a plan takes effect; the glossary says what each one stops."""

    RESTART_APP = "restart-app"
    RESTART_QUERY = "restart-query"
    WORKER = "worker"
    BOUNDARY = "boundary"
    CUT = "cut"
    WARM_CUT = "warm-cut"


@dataclass(frozen=True, slots=True)
class Rescale:
    """An operator gets another number of instances."""

    topology: str
    operator: str
    parallelism: int

    def __post_init__(self) -> None:
        require_name("rescale.topology", self.topology)
        require_name("rescale.operator", self.operator)
        require_whole(f"rescale of {self.operator}: parallelism", self.parallelism, 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that should hold after it was applied; what it does not name stays as it is.

    shares_pct: CPU that is guaranteed to an instance, in per cent of a core; what placers reckon with.
    limits_pct: the most an instance may use; this is what is enforced. Empty where a policy enforces nothing.
    cuts: topologies whose epoch ends now even if nothing else of them changes.
    rests: topologies whose sources read nothing from now on, because no node is theirs; the others' read. None: as it
    is.
    heeds_triggers: whether a trigger may change a level while the policy that made this steers. None: as it is.
    version: of the snapshot it was made from; None for an order given by hand, which is checked but never stale.
    delay_s: of a warm-cut: the least time from the order to the cut, in which the targets run beside the instances
    that are to end; 0: the cut comes as soon as they are prepared. Other modes have nothing that could wait.
    """

    placement: Placement = field(default_factory=Placement)
    rescales: tuple[Rescale, ...] = ()
    shares_pct: Mapping[Instance, float] = field(default_factory=dict)
    limits_pct: Mapping[Instance, float] = field(default_factory=dict)
    cuts: tuple[str, ...] = ()
    mode: MigrationMode = MigrationMode.CUT
    version: int | None = None
    reasons: tuple[Reason, ...] = ()
    rests: tuple[str, ...] | None = None
    heeds_triggers: bool | None = None
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        for name, word in (("shares_pct", "share"), ("limits_pct", "limit")):
            found = MappingProxyType(dict(getattr(self, name)))
            object.__setattr__(self, name, found)
            for instance, pct in found.items():
                require_number(f"plan: {word} of {instance}", pct)
        require_number("plan: delay_s", self.delay_s)
        keys = [(r.topology, r.operator) for r in self.rescales]
        require(len(set(keys)) == len(keys), "plan: an operator is rescaled twice")

    def __hash__(self) -> int:
        limits, shares = tuple(self.limits_pct.items()), tuple(self.shares_pct.items())
        return hash((self.placement, self.rescales, shares, limits, self.cuts, self.mode, self.version))


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was not done, and why: one sentence."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine made of a plan. If anything is refused, nothing was done, and ``done`` is empty."""

    done: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    order_to_commit_s: float | None = None

    @property
    def ok(self) -> bool:
        return not self.refused
