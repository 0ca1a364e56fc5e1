"""What the author of a query declares for its operators: instances, exclusions, CPU and memory. Pure.

How these are written is in ``barograph.config.written.operators``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from barograph.config.written.operators import InstanceRange
from barograph.model import Operator, Topology

T = TypeVar("T")
EXCLUDED = "it is excluded from scaling (query.excluded)"


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
