"""A plan, and the outcome of applying it. Only engines act on a Plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from barograph.model.checks import require, require_name, require_number, require_topology_name, require_whole
from barograph.model.cluster import Slot
from barograph.model.placement import Placement
from barograph.model.reason import Reason
from barograph.model.topology import Instance


class MigrationMode(StrEnum):
    """How a plan takes effect; the glossary says what each one stops."""

    RESTART_APP = "restart-app"
    RESTART_QUERY = "restart-query"
    WORKER = "worker"
    BOUNDARY = "boundary"
    CUT = "cut"
    WARM_CUT = "warm-cut"


BOUNDARY_S = 0.5  # for which a boundary pauses the output, as policies take it


class RefusalCode(StrEnum):
    """One code for each kind of refusal, so that programs need not read the sentence."""

    STALE = "stale"  # the cluster has changed since the plan was made
    FROZEN = "frozen"  # the driver is frozen
    BUSY = "busy"  # the driver is still applying an earlier plan
    NO_ANSWER = "no-answer"  # the driver did not answer; what was ordered may have been done
    ENGINE_FAILED = "engine-failed"  # the engine tried and failed
    NO_SUCH_TOPOLOGY = "no-such-topology"
    NO_SUCH_OPERATOR = "no-such-operator"
    NO_SUCH_INSTANCE = "no-such-instance"
    NO_SUCH_NODE = "no-such-node"
    NODE_RELEASED = "node-released"  # the node is there but was released
    NODE_IN_USE = "node-in-use"  # an instance, a task or another application is on the node that is to be released
    NOT_RELEASED = "not-released"  # the node that is to be fetched was not released
    NODES_KEPT = "nodes-kept"  # this driver releases and fetches no nodes
    LEAST_EXECUTORS = "least-executors"  # fewer executors would be left than the application keeps
    MOST_EXECUTORS = "most-executors"  # more executors than the application may have
    RESTARTING = "restarting"  # a query is being started again, and which nodes it needs is not known
    NO_WORKER = "no-worker"  # no worker is alive in the slot
    FIXED_PARALLELISM = "fixed-parallelism"  # the operator cannot have another number of instances
    ABOVE_MOST = "above-most"  # more instances than the operator may have
    BELOW_LEAST = "below-least"  # fewer instances than the operator must have
    TOO_MUCH_CPU = "too-much-cpu"  # more CPU than one instance can use there
    WORKER_FULL = "worker-full"  # more instances than this worker has seats
    TOO_FEW_SEATS = "too-few-seats"  # more instances than all workers have seats
    NO_PLACE = "no-place"  # a placer found no place for the instance
    NO_LIMITS = "no-limits"  # an executor does not hold its instances to their limits
    OTHER_WAY = "other-way"  # an executor holds its instances to their limits, but not by the way that was asked for
    MODE_IMPOSSIBLE = "mode-impossible"  # the engine cannot change this topology in this mode
    RESTART_FAILED = "restart-failed"  # the query could not be restarted for it and goes on as it was


@dataclass(frozen=True, slots=True)
class Rescale:
    """An operator gets another number of instances."""

    topology: str
    operator: str
    parallelism: int

    def __post_init__(self) -> None:
        require_topology_name("rescale.topology", self.topology)
        require_name("rescale.operator", self.operator)
        require_whole(f"rescale of {self.operator}: parallelism", self.parallelism, 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What should hold once it is applied; what it does not name stays as it is.

    shares_pct: CPU that is guaranteed to an instance, in per cent of a core; what placers plan with.
    limits_pct: the most an instance may use; this is what is enforced. Empty where a policy enforces nothing.
    cuts: topologies whose epoch ends now even if nothing else of them changes.
    rests: topologies whose sources stop reading, because they have no node; all other sources read. None: no change.
    heeds_triggers: whether a trigger may change a level while the policy that made this plan steers. None: no change.
    version: of the snapshot it was made from; None for an order given by hand, which is checked but never stale.
    delay_s: the least time from the order to the cut, in which the targets run beside the instances
    that are to end; 0: the cut is made as soon as they are prepared. Only for warm-cut.
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
    """What was not done, the reason's code, and the reason as a sentence. slot: of the worker, if it is about one.
    topology: the one that goes on as it was, since its restart failed or its changes were left out. node: which is not
    released or fetched."""

    what: str
    code: RefusalCode
    reason: str
    slot: Slot | None = None
    topology: str = ""
    node: str = ""

    def __post_init__(self) -> None:
        require(isinstance(self.code, RefusalCode), f"the refusal of {self.what} needs a code, not {self.code!r}")


def nodes_kept(release: Iterable[str], fetch: Iterable[str], code: RefusalCode, why: str) -> tuple[Refusal, ...]:
    """A refusal for each node that was to be released or fetched, and stays as it is."""
    found = [(f"release of {node}", node) for node in release] + [(f"fetch of {node}", node) for node in fetch]
    return tuple(Refusal(what, code, why, node=node) for what, node in found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine did about a plan. If anything is refused, nothing was done and ``done`` is empty; only a refusal
    with the code ``restart-failed`` is about one topology, and the rest of the plan was applied.

    left_out: what the engine cannot do, such as limits where they are switched off, topologies that it cannot change in
    the plan's mode, and nodes that are not released or fetched although they were to be; all else was applied.
    done: sentences for people. moves, rescales: how many instances were ordered to another slot, and how many operators
    to another parallelism; a change that was ordered before and still waits for a boundary is not counted again.
    """

    done: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    order_to_commit_s: float | None = None
    moves: int = 0
    rescales: int = 0
    left_out: tuple[Refusal, ...] = ()

    @property
    def failed(self) -> frozenset[str]:
        """Topologies that go on as they were although the rest of the plan was applied."""
        return frozenset(r.topology for r in self.refused if r.code is RefusalCode.RESTART_FAILED)

    @property
    def untouched(self) -> frozenset[str]:
        """Topologies whose moves, rescales and cuts were left out of the plan."""
        return frozenset(r.topology for r in self.left_out if r.topology)

    @property
    def ok(self) -> bool:
        return not self.refused
