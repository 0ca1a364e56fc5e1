"""What each stage of a cycle hands to the next: Forecast, Demand, Allotment. Each carries its reasons in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from barograph.model.checks import require, require_number, require_whole


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was decided: about what, one sentence, and the numbers behind it."""

    about: str
    why: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", MappingProxyType(dict(self.numbers)))

    def __hash__(self) -> int:
        return hash((self.about, self.why, tuple(self.numbers.items())))


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
    wanted: instances it would need were it free to have them (above ``parallelism`` where it is not).
    reserved_pct: the room a placer should leave for each, which is not allotted; empty for no more than the shares.
    ceilings_pct: limits to write instead of the shares, where an instance may use what others leave; empty for none.
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

    enforced: whether instances are limited by their shares; where not, shares are only what a placer reckons with.
    reserved: whether the shares are set aside for the instances; where not, they are an estimate of what is used.
    """

    operators: tuple[OperatorDemand, ...]
    enforced: bool = True
    reserved: bool = True

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], OperatorDemand]:
        return {(o.topology, o.operator): o for o in self.operators}

    def of(self, topology: str, operator: str) -> OperatorDemand | None:
        return self._by_name.get((topology, operator))


@dataclass(frozen=True, slots=True)
class Allotment:
    """Which nodes each topology may use. A topology that is not named may use every node that is not exclusive.

    starved: topologies that get none now. idle: nodes nobody may use.
    workers: of a named topology, how many workers each of its nodes gets, in the order of its nodes; a topology that
    is missing here is spread as the placer thinks fit.
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
