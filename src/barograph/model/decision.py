"""What each stage of a cycle hands to the next: Forecast, Demand, Allotment. Each carries its reasons in numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from barograph.model.checks import require, require_number, require_whole
from barograph.model.reason import Reason
from barograph.model.topology import Instance


@dataclass(frozen=True, slots=True)
class OperatorForecast:
    """What an operator is expected to see in the coming cycle.

    arrived: rows expected to be sent to it (L). executed: rows it will have to execute (psi).
    rising: whether its load is growing. error_rows: by how much such forecasts were off lately, 0 where not known.
    """

    topology: str
    operator: str
    arrived: float
    executed: float
    rising: bool = False
    reason: Reason | None = None
    error_rows: float = 0.0

    def __post_init__(self) -> None:
        here = f"forecast of {self.topology}/{self.operator}"
        require_number(f"{here}: arrived", self.arrived)
        require_number(f"{here}: executed", self.executed)
        require_number(f"{here}: error_rows", self.error_rows)


@dataclass(frozen=True)
class Forecast:
    operators: tuple[OperatorForecast, ...]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], OperatorForecast]:
        return {(o.topology, o.operator): o for o in self.operators}

    def of(self, topology: str, operator: str) -> OperatorForecast | None:
        return self._by_name.get((topology, operator))


@dataclass(frozen=True, slots=True)
class OperatorDemand:
    """How many instances an operator needs, and the CPU share of each, in per cent of a core.

    held_pct: the smoothed demand per instance that the shares were rounded up from; the next cycle starts from it.
    Empty where the shares are a guess.
    wanted: instances that its load needs; above ``parallelism`` where it cannot have as many.
    reserved_pct: the room a placer should leave for each instance, without allotting it; empty: only its share.
    ceilings_pct: limits to write instead of the shares, where an instance may use what others leave; empty for none.
    key_part: the part of its rows that one key has; 0 where it is not known to be one.
    """

    topology: str
    operator: str
    parallelism: int
    shares_pct: tuple[float, ...]
    held_pct: tuple[float, ...] = ()
    wanted: int = 0
    reason: Reason | None = None
    reserved_pct: tuple[float, ...] = ()
    ceilings_pct: tuple[float, ...] = ()
    key_part: float = 0.0

    def __post_init__(self) -> None:
        here = f"demand of {self.topology}/{self.operator}"
        require_whole(f"{here}: parallelism", self.parallelism, 1)
        require(len(self.shares_pct) == self.parallelism, f"{here}: one share for each instance")
        for share in self.shares_pct:
            require_number(f"{here}: share", share)
        for name in ("reserved_pct", "ceilings_pct"):
            values = getattr(self, name)
            require(len(values) in (0, self.parallelism), f"{here}: one of {name} for each instance, or none")
            for value in values:
                require_number(f"{here}: {name}", value)


@dataclass(frozen=True)
class Demand:
    """What every operator needs.

    enforced: whether instances are limited by their shares; where not, shares are only what a placer plans with.
    reserved: whether the shares are set aside for the instances; where not, they are an estimate of what is used.
    reasons: about topologies or instances; those of operators are with the operators.
    """

    operators: tuple[OperatorDemand, ...]
    enforced: bool = True
    reserved: bool = True
    reasons: tuple[Reason, ...] = ()

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], OperatorDemand]:
        return {(o.topology, o.operator): o for o in self.operators}

    def of(self, topology: str, operator: str) -> OperatorDemand | None:
        return self._by_name.get((topology, operator))

    def shares_by_instance(self) -> dict[Instance, float]:
        return self._by_instance(lambda o: o.shares_pct)

    def ceilings_by_instance(self) -> dict[Instance, float]:
        """Of the operators that have ceilings."""
        return self._by_instance(lambda o: o.ceilings_pct)

    def _by_instance(self, values_of: Callable[[OperatorDemand], Sequence[float]]) -> dict[Instance, float]:
        return {
            Instance(o.topology, o.operator, index): value
            for o in self.operators
            for index, value in enumerate(values_of(o))
        }


@dataclass(frozen=True, slots=True)
class Allotment:
    """Which nodes each topology may use. A topology that is not named may use every node that is not exclusive.

    starved: topologies that get none now. idle: nodes that no topology may use.
    workers: of a named topology, how many workers each of its nodes gets, in the order of its nodes; a topology that
    is missing here is spread as the placer decides.
    """

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    workers: Mapping[str, tuple[int, ...]] = field(default_factory=dict, kw_only=True)
    starved: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", MappingProxyType(dict(self.nodes)))
        object.__setattr__(self, "workers", MappingProxyType(dict(self.workers)))
        for topology, counts in self.workers.items():
            same = len(counts) == len(self.nodes.get(topology, ()))
            require(same, f"allotment of {topology}: one number of workers for each node")

    def __hash__(self) -> int:
        return hash((tuple(self.nodes.items()), self.starved, self.idle))
