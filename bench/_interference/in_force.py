"""What held while a case was measured: the ways in which executors held limits, and the places of all instances."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barograph.engines.spark.bridge.reports import Executor
from barograph.engines.spark.orders.share_orders import OFF
from barograph.model import Instance
from barograph.testing.local_cluster import AUTO

IDLE = "idle"
WAYS = (AUTO, "cgroup", OFF)


@dataclass
class InForce:
    """ways: in which executors held limits, each with their reasons. elsewhere: instances that were not always where
    the plan for all cases has them, or that it does not have."""

    ways: dict[str, set[str]] = field(default_factory=dict)
    elsewhere: set[Instance] = field(default_factory=set)

    def saw(self, executors: Iterable[Executor]) -> None:
        for executor in executors:
            because = {executor.enforces_because} if executor.enforces_because else set()
            self.ways.setdefault(executor.enforces or "unknown", set()).update(because)

    def found(self, nodes: Mapping[Instance, str], planned: Mapping[Instance, str]) -> None:
        """nodes, planned: of each instance, as it is and as it should be."""
        self.elsewhere |= {i for i in {**nodes, **planned} if nodes.get(i) != planned.get(i)}

    def counts_for(self, asked: str) -> bool:
        """Whether every instance stayed, and no executor held limits in another way at any time. The default may be any
        way but off; beside an idle B the way does not matter."""
        if self.elsewhere or asked == IDLE:
            return not self.elsewhere
        (only, *others) = sorted(self.ways) or ["unknown"]
        return not others and (only not in (OFF, "unknown") if asked == AUTO else only == asked)

    def __str__(self) -> str:
        found = (f"{way} ({'; '.join(sorted(because))})" if because else way for way, because in self.ways.items())
        moved = f", and {', '.join(map(str, sorted(self.elsewhere)))} elsewhere" if self.elsewhere else ""
        return ", ".join(sorted(found)) + moved


def ratios(p99_ms: Mapping[str, Sequence[float]], in_force: Mapping[str, Sequence[InForce]]) -> dict[str, list[float]]:
    """By way, of the rounds that count for it."""
    return {
        way: [
            round(b / a, 3)
            for a, b, alone, beside in zip(p99_ms[IDLE], p99_ms[way], in_force[IDLE], in_force[way], strict=True)
            if alone.counts_for(IDLE) and beside.counts_for(way)
        ]
        for way in WAYS
    }


def not_counted(in_force: Mapping[str, Sequence[InForce]]) -> list[str]:
    return [
        f"round {turn}, {kind}: not counted, because limits were held by {held}"
        for kind in (IDLE, *WAYS)
        for turn, held in enumerate(in_force[kind])
        if not held.counts_for(kind)
    ]
