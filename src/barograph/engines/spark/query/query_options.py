"""What the author of a query asks for besides its plan: its priority and how many nodes. Spark has no such options."""

from dataclasses import asdict, dataclass, replace

from barograph.config import default
from barograph.model import Topology
from barograph.model.checks import require, require_whole


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """level: priority, 1 is highest. The others as in ``Topology``; None leaves them to the policy."""

    level: int = default("query.level")
    desired_nodes: int | None = default("query.desired-nodes")
    minimum_nodes: int | None = default("query.minimum-nodes")
    workers: int | None = default("query.workers")
    isolate_nodes: int = default("query.isolate-nodes")

    def __post_init__(self) -> None:
        require_whole("level", self.level, 1)
        for name, least in (("desired_nodes", 1), ("minimum_nodes", 0), ("workers", 1)):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), least)
        require_whole("isolate_nodes", self.isolate_nodes)
        if self.desired_nodes is not None and self.minimum_nodes is not None:
            require(
                self.minimum_nodes <= self.desired_nodes,
                f"minimum_nodes {self.minimum_nodes} is above desired_nodes {self.desired_nodes}",
            )

    def of(self, topology: Topology) -> Topology:
        return replace(topology, **asdict(self))
