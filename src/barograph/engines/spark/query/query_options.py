"""What the author of a query asks for besides its plan: priority, nodes, operators, quotas. Spark has no such thing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from barograph.config import default
from barograph.config.written.operators import parse_names, parse_numbers, parse_ranges
from barograph.engines.spark.query.operator_options import OperatorOptions
from barograph.model import BadInput, Topology
from barograph.model.checks import require, require_positive, require_whole

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """level: priority, 1 is highest. instances, excluded, cpu, memory: of operators, as they are written
    (``config.written.operators``). quota_cpu_pct, quota_executors: the most that the query may have. The others, as
    target_p99_ms, as in ``Topology``; None leaves them to the policy."""

    level: int = default("query.level")
    desired_nodes: int | None = default("query.desired-nodes")
    minimum_nodes: int | None = default("query.minimum-nodes")
    workers: int | None = default("query.workers")
    isolate_nodes: int = default("query.isolate-nodes")
    instances: str | None = default("query.instances")
    excluded: str | None = default("query.excluded")
    cpu: str | None = default("query.cpu")
    memory: str | None = default("query.memory")
    quota_cpu_pct: float | None = default("query.quota-cpu")
    quota_executors: int | None = default("query.quota-executors")
    target_p99_ms: float | None = default("query.target-p99")

    def __post_init__(self) -> None:
        require_whole("level", self.level, 1)
        for name, least in (("desired_nodes", 1), ("minimum_nodes", 0), ("workers", 1), ("quota_executors", 1)):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), least)
        require_whole("isolate_nodes", self.isolate_nodes)
        if self.quota_cpu_pct is not None:
            require_positive("quota_cpu_pct", self.quota_cpu_pct)
        if self.target_p99_ms is not None:
            require_positive("target_p99_ms", self.target_p99_ms)
        if self.desired_nodes is not None and self.minimum_nodes is not None:
            require(
                self.minimum_nodes <= self.desired_nodes,
                f"minimum_nodes {self.minimum_nodes} is above desired_nodes {self.desired_nodes}",
            )
        self.operators()

    def operators(self) -> OperatorOptions:
        return OperatorOptions(
            _parsed("query.instances", self.instances, parse_ranges),
            _parsed("query.excluded", self.excluded, parse_names),
            _parsed("query.cpu", self.cpu, parse_numbers),
            _parsed("query.memory", self.memory, parse_numbers),
        )

    def declared(self) -> list[str]:
        """Names of the options that are set, of those that only some policies use."""
        set_here = {
            "query.workers": self.workers is not None, "query.isolate-nodes": self.isolate_nodes > 0,
            "query.cpu": bool(self.cpu), "query.memory": bool(self.memory),
            "query.target-p99": self.target_p99_ms is not None,
        }  # fmt: skip
        return [name for name, is_set in set_here.items() if is_set]

    def of(self, topology: Topology) -> Topology:
        return replace(
            topology,
            operators=self.operators().of(topology),
            level=self.level,
            desired_nodes=self.desired_nodes,
            minimum_nodes=self.minimum_nodes,
            workers=self.workers,
            isolate_nodes=self.isolate_nodes,
            quota_cpu_pct=self.quota_cpu_pct,
            quota_workers=self.quota_executors,
            target_p99_ms=self.target_p99_ms,
        )


def _parsed(option: str, text: str | None, parse: Callable[[str], T]) -> T:
    try:
        return parse(text or "")
    except BadInput as error:
        raise BadInput(f"{option} {text!r}: {error}") from None
