"""What the author of a query declares for its operators, as it is written: instances, exclusions, CPU and memory. Pure.

    split=1..8,count=2..      least and most instances; one number is both
    count,words/split         operators that are left as they are
    split=40,count=25         per cent of a core, or MB, that one instance needs

A name is an operator's, in every query that has one of that name, or QUERY/OPERATOR.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from barograph.model import BadInput, Operator, Topology
from barograph.model.checks import require

T = TypeVar("T")
EXCLUDED = "it is excluded from scaling (query.excluded)"
_RANGE = re.compile(r"(?P<least>\d{1,9})?(?P<to>\.\.)?(?P<most>\d{1,9})?")


@dataclass(frozen=True, slots=True)
class InstanceRange:
    """Least and most instances of an operator; most: None for no bound of its own."""

    least: int
    most: int | None


def parse_ranges(text: str) -> dict[str, InstanceRange]:
    return _pairs("query.instances", text, _range, "OPERATOR=LEAST..MOST, for example split=1..8")


def parse_numbers(option: str, text: str) -> dict[str, float]:
    return _pairs(option, text, _number, "OPERATOR=NUMBER, for example split=40")


def parse_names(text: str) -> tuple[str, ...]:
    found = tuple(filter(None, (piece.strip() for piece in text.split(","))))
    require(all("=" not in name for name in found), f"query.excluded {text!r} must be names of operators: write split")
    return found


def ranges_as_text(limits: Mapping[str, object]) -> str:
    """``{"split": (1, 8)}`` as it is written; None for no bound."""
    pieces = []
    for name, bounds in limits.items():
        fits = isinstance(bounds, tuple | list) and len(bounds) == 2 and isinstance(name, str)
        require(fits, f"limits[{name!r}] must be (least, most), for example (1, 8), not {bounds!r}")
        least, most = ("" if b is None else b for b in bounds)  # type: ignore[attr-defined]  # it is a pair
        pieces.append(f"{name}={least}..{most}")
    return ",".join(pieces)


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """By operator, or by QUERY/OPERATOR: instances, exclusions, and the CPU and memory of one instance."""

    instances: Mapping[str, InstanceRange]
    excluded: tuple[str, ...]
    cpu_pct: Mapping[str, float]
    memory_mb: Mapping[str, float]

    def of(self, topology: Topology) -> tuple[Operator, ...]:
        return tuple(self._operator(topology.name, o) for o in topology.operators)

    def unknown(self, topology: Topology) -> tuple[str, ...]:
        """Names that belong to this topology, or to no topology in particular, and are no operator of it."""
        names = dict.fromkeys([*self.instances, *self.excluded, *self.cpu_pct, *self.memory_mb])
        known = {o.name for o in topology.operators}
        own = [(name, name.removeprefix(f"{topology.name}/")) for name in names]
        return tuple(name for name, operator in own if "/" not in operator and operator not in known)

    def _operator(self, topology: str, operator: Operator) -> Operator:
        bounds = _found(self.instances, topology, operator.name)
        if bounds is not None:
            operator = replace(operator, min_parallelism=bounds.least, max_parallelism=bounds.most)
        if {operator.name, f"{topology}/{operator.name}"} & set(self.excluded):
            operator = replace(operator, excluded=True, fixed_because=operator.fixed_because or EXCLUDED)
        cpu, memory = (_found(m, topology, operator.name) for m in (self.cpu_pct, self.memory_mb))
        return replace(
            operator,
            cpu_pct=operator.cpu_pct if cpu is None else cpu,
            memory_mb=operator.memory_mb if memory is None else memory,
        )


def _found(options: Mapping[str, T], topology: str, operator: str) -> T | None:
    return options.get(f"{topology}/{operator}", options.get(operator))


def _pairs(option: str, text: str, read: Callable[[str], T | None], form: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for piece in _pieces(text):
        name, equals, value = (part.strip() for part in piece.partition("="))
        read_value = read(value) if name and equals else None
        if read_value is None:
            raise BadInput(f"{option} {text!r}: {piece!r} is not {form}")
        require(name not in found, f"{option} {text!r} names {name} twice: name it once")
        found[name] = read_value
    return found


def _pieces(text: str) -> Iterable[str]:
    return filter(None, (piece.strip() for piece in text.split(",")))


def _range(text: str) -> InstanceRange | None:
    match = _RANGE.fullmatch(text)
    if match is None or not (match["least"] or match["most"]) or (match["most"] and not match["to"]):
        return None
    least = int(match["least"] or 1)
    most = least if match["to"] is None else int(match["most"]) if match["most"] else None
    return InstanceRange(least, most) if least >= 1 and (most is None or most >= least) else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text) and float(text) > 0 else None
